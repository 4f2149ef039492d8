/*
 * The MPI calls as cgo takes them best. A call is here, and not made from Go directly, for one of
 * three reasons:
 *
 * - Its buffer is a char*. For a void* cgo would inspect, at run time, the whole Go object that the
 *   buffer lies in, and refuse an array of numbers in a struct that also holds a pointer. The
 *   elements of an MPI datatype hold none (see Datatype in datatype.go).
 * - It can be in place. MPI_IN_PLACE is no address that Go may hold, so Go passes NULL for it.
 * - It gives back a status. Returned by value it costs Go no heap allocation.
 *
 * None of them is marked noescape or nocallback: a tool preloaded over MPI may call into Go.
 */
#ifndef EK_MPI_CALLS_H
#define EK_MPI_CALLS_H

#include <mpi.h>

/* What a call that completes something gives back; value is its flag or index. */
typedef struct {
    int code;
    int value;
    MPI_Status status;
} ek_outcome;

static inline const void *ek_or_in_place(const char *send)
{
    return send ? send : MPI_IN_PLACE;
}

/* Point to point */

static inline int ek_send(const char *buf, int n, MPI_Datatype t, int dest, int tag, MPI_Comm comm)
{
    return MPI_Send(buf, n, t, dest, tag, comm);
}

static inline int ek_ssend(const char *buf, int n, MPI_Datatype t, int dest, int tag, MPI_Comm comm)
{
    return MPI_Ssend(buf, n, t, dest, tag, comm);
}

static inline ek_outcome ek_recv(char *buf, int n, MPI_Datatype t, int source, int tag,
                                 MPI_Comm comm)
{
    ek_outcome o = {0};
    o.code = MPI_Recv(buf, n, t, source, tag, comm, &o.status);
    return o;
}

static inline ek_outcome ek_sendrecv(const char *send, int sn, MPI_Datatype st, int dest, int stag,
                                     char *recv, int rn, MPI_Datatype rt, int source, int rtag,
                                     MPI_Comm comm)
{
    ek_outcome o = {0};
    o.code = MPI_Sendrecv(send, sn, st, dest, stag, recv, rn, rt, source, rtag, comm, &o.status);
    return o;
}

static inline int ek_isend(const char *buf, int n, MPI_Datatype t, int dest, int tag, MPI_Comm comm,
                           MPI_Request *request)
{
    return MPI_Isend(buf, n, t, dest, tag, comm, request);
}

static inline int ek_irecv(char *buf, int n, MPI_Datatype t, int source, int tag, MPI_Comm comm,
                           MPI_Request *request)
{
    return MPI_Irecv(buf, n, t, source, tag, comm, request);
}

static inline ek_outcome ek_probe(int source, int tag, MPI_Comm comm)
{
    ek_outcome o = {0};
    o.code = MPI_Probe(source, tag, comm, &o.status);
    return o;
}

static inline ek_outcome ek_iprobe(int source, int tag, MPI_Comm comm)
{
    ek_outcome o = {0};
    o.code = MPI_Iprobe(source, tag, comm, &o.value, &o.status);
    return o;
}

static inline ek_outcome ek_mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message)
{
    ek_outcome o = {0};
    o.code = MPI_Mprobe(source, tag, comm, message, &o.status);
    return o;
}

static inline ek_outcome ek_improbe(int source, int tag, MPI_Comm comm, MPI_Message *message)
{
    ek_outcome o = {0};
    o.code = MPI_Improbe(source, tag, comm, &o.value, message, &o.status);
    return o;
}

static inline ek_outcome ek_mrecv(char *buf, int n, MPI_Datatype t, MPI_Message *message)
{
    ek_outcome o = {0};
    o.code = MPI_Mrecv(buf, n, t, message, &o.status);
    return o;
}

/* Completion */

static inline ek_outcome ek_wait(MPI_Request *request)
{
    ek_outcome o = {0};
    o.code = MPI_Wait(request, &o.status);
    return o;
}

static inline ek_outcome ek_test(MPI_Request *request)
{
    ek_outcome o = {0};
    o.code = MPI_Test(request, &o.value, &o.status);
    return o;
}

static inline ek_outcome ek_waitany(int n, MPI_Request *requests)
{
    ek_outcome o = {0};
    o.code = MPI_Waitany(n, requests, &o.value, &o.status);
    return o;
}

static inline int ek_get_count(MPI_Status status, MPI_Datatype t, int *n)
{
    return MPI_Get_count(&status, t, n);
}

static inline int ek_test_cancelled(MPI_Status status, int *flag)
{
    return MPI_Test_cancelled(&status, flag);
}

/* Collectives */

static inline int ek_bcast(char *buf, int n, MPI_Datatype t, int root, MPI_Comm comm)
{
    return MPI_Bcast(buf, n, t, root, comm);
}

static inline int ek_ibcast(char *buf, int n, MPI_Datatype t, int root, MPI_Comm comm,
                            MPI_Request *request)
{
    return MPI_Ibcast(buf, n, t, root, comm, request);
}

static inline int ek_reduce(const char *send, char *recv, int n, MPI_Datatype t, MPI_Op op, int root,
                            MPI_Comm comm)
{
    return MPI_Reduce(ek_or_in_place(send), recv, n, t, op, root, comm);
}

static inline int ek_allreduce(const char *send, char *recv, int n, MPI_Datatype t, MPI_Op op,
                               MPI_Comm comm)
{
    return MPI_Allreduce(ek_or_in_place(send), recv, n, t, op, comm);
}

static inline int ek_iallreduce(const char *send, char *recv, int n, MPI_Datatype t, MPI_Op op,
                                MPI_Comm comm, MPI_Request *request)
{
    return MPI_Iallreduce(ek_or_in_place(send), recv, n, t, op, comm, request);
}

static inline int ek_reduce_scatter_block(const char *send, char *recv, int n, MPI_Datatype t,
                                          MPI_Op op, MPI_Comm comm)
{
    return MPI_Reduce_scatter_block(ek_or_in_place(send), recv, n, t, op, comm);
}

static inline int ek_scan(const char *send, char *recv, int n, MPI_Datatype t, MPI_Op op,
                          MPI_Comm comm)
{
    return MPI_Scan(ek_or_in_place(send), recv, n, t, op, comm);
}

static inline int ek_exscan(const char *send, char *recv, int n, MPI_Datatype t, MPI_Op op,
                            MPI_Comm comm)
{
    return MPI_Exscan(ek_or_in_place(send), recv, n, t, op, comm);
}

static inline int ek_gather(const char *send, int sn, char *recv, int rn, MPI_Datatype t, int root,
                            MPI_Comm comm)
{
    return MPI_Gather(send, sn, t, recv, rn, t, root, comm);
}

static inline int ek_gatherv(const char *send, int sn, char *recv, const int *counts,
                             const int *displs, MPI_Datatype t, int root, MPI_Comm comm)
{
    return MPI_Gatherv(send, sn, t, recv, counts, displs, t, root, comm);
}

static inline int ek_scatter(const char *send, int sn, char *recv, int rn, MPI_Datatype t, int root,
                             MPI_Comm comm)
{
    return MPI_Scatter(send, sn, t, recv, rn, t, root, comm);
}

static inline int ek_scatterv(const char *send, const int *counts, const int *displs, char *recv,
                              int rn, MPI_Datatype t, int root, MPI_Comm comm)
{
    return MPI_Scatterv(send, counts, displs, t, recv, rn, t, root, comm);
}

static inline int ek_allgather(const char *send, int sn, char *recv, int rn, MPI_Datatype t,
                               MPI_Comm comm)
{
    return MPI_Allgather(ek_or_in_place(send), sn, t, recv, rn, t, comm);
}

static inline int ek_allgatherv(const char *send, int sn, char *recv, const int *counts,
                                const int *displs, MPI_Datatype t, MPI_Comm comm)
{
    return MPI_Allgatherv(send, sn, t, recv, counts, displs, t, comm);
}

static inline int ek_alltoall(const char *send, char *recv, int n, MPI_Datatype t, MPI_Comm comm)
{
    return MPI_Alltoall(ek_or_in_place(send), n, t, recv, n, t, comm);
}

static inline int ek_alltoallv(const char *send, const int *scounts, const int *sdispls, char *recv,
                               const int *rcounts, const int *rdispls, MPI_Datatype t, MPI_Comm comm)
{
    return MPI_Alltoallv(send, scounts, sdispls, t, recv, rcounts, rdispls, t, comm);
}

/* Windows */

static inline int ek_win_create(char *base, MPI_Aint bytes, int unit, MPI_Comm comm, MPI_Win *win)
{
    return MPI_Win_create(base, bytes, unit, MPI_INFO_NULL, comm, win);
}

static inline int ek_put(const char *origin, int n, MPI_Datatype t, int target, MPI_Aint offset,
                         MPI_Win win)
{
    return MPI_Put(origin, n, t, target, offset, n, t, win);
}

static inline int ek_get(char *origin, int n, MPI_Datatype t, int target, MPI_Aint offset,
                         MPI_Win win)
{
    return MPI_Get(origin, n, t, target, offset, n, t, win);
}

static inline int ek_accumulate(const char *origin, int n, MPI_Datatype t, int target,
                                MPI_Aint offset, MPI_Op op, MPI_Win win)
{
    return MPI_Accumulate(origin, n, t, target, offset, n, t, op, win);
}

static inline int ek_fetch_and_op(const char *origin, char *result, MPI_Datatype t, int target,
                                  MPI_Aint offset, MPI_Op op, MPI_Win win)
{
    return MPI_Fetch_and_op(origin, result, t, target, offset, op, win);
}

static inline int ek_compare_and_swap(const char *origin, const char *compare, char *result,
                                      MPI_Datatype t, int target, MPI_Aint offset, MPI_Win win)
{
    return MPI_Compare_and_swap(origin, compare, result, t, target, offset, win);
}

#endif
