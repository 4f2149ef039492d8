/*
 * The MPI calls as cgo takes them best. A call is here, and not made from Go directly, for one of
 * four reasons:
 *
 * - Its buffer is a char*. For a void* cgo would inspect, at run time, the whole Go object that the
 *   buffer lies in, and refuse an array of numbers in a struct that also holds a pointer. The
 *   elements of an MPI datatype hold none (see Datatype in datatype.go).
 * - It can be in place. MPI_IN_PLACE is no address that Go may hold, so Go passes NULL for it.
 * - It gives back a status. Returned by value it costs Go no heap allocation.
 * - evenkeel records it, if it is there, and is to be told from which place of the program it comes.
 *
 * None of them is marked noescape or nocallback: a tool preloaded over MPI may call into Go.
 */
#ifndef EK_MPI_CALLS_H
#define EK_MPI_CALLS_H

#include <mpi.h>
#include <stdint.h>

/* What a call that completes something gives back; value is its flag or index. */
typedef struct {
    int code;
    int value;
    MPI_Status status;
} ek_outcome;

/* What a call is about, and the program's place that makes it; 0 if nobody wants to know. */
typedef struct {
    MPI_Comm handle;
    uintptr_t from;
} ek_comm;

typedef struct {
    MPI_Win handle;
    uintptr_t from;
} ek_win;

/* ek_call_from of evenkeel.h, if evenkeel was preloaded. */
extern void (*ek_tell)(const void *address);

static inline void ek_from(uintptr_t address)
{
    if (address)
        ek_tell((const void *)address);
}

static inline MPI_Comm ek_on(ek_comm comm)
{
    ek_from(comm.from);
    return comm.handle;
}

static inline MPI_Win ek_over(ek_win win)
{
    ek_from(win.from);
    return win.handle;
}

static inline const void *ek_or_in_place(const char *send)
{
    return send ? send : MPI_IN_PLACE;
}

/* Point to point */

static inline int ek_send(const char *buf, int n, MPI_Datatype t, int dest, int tag, ek_comm comm)
{
    return MPI_Send(buf, n, t, dest, tag, ek_on(comm));
}

static inline int ek_ssend(const char *buf, int n, MPI_Datatype t, int dest, int tag, ek_comm comm)
{
    return MPI_Ssend(buf, n, t, dest, tag, ek_on(comm));
}

static inline ek_outcome ek_recv(char *buf, int n, MPI_Datatype t, int source, int tag,
                                 ek_comm comm)
{
    ek_outcome o = {0};
    o.code = MPI_Recv(buf, n, t, source, tag, ek_on(comm), &o.status);
    return o;
}

static inline ek_outcome ek_sendrecv(const char *send, int sn, MPI_Datatype st, int dest, int stag,
                                     char *recv, int rn, MPI_Datatype rt, int source, int rtag,
                                     ek_comm comm)
{
    ek_outcome o = {0};
    o.code = MPI_Sendrecv(send, sn, st, dest, stag, recv, rn, rt, source, rtag, ek_on(comm), &o.status);
    return o;
}

static inline int ek_isend(const char *buf, int n, MPI_Datatype t, int dest, int tag, ek_comm comm,
                           MPI_Request *request)
{
    return MPI_Isend(buf, n, t, dest, tag, ek_on(comm), request);
}

static inline int ek_irecv(char *buf, int n, MPI_Datatype t, int source, int tag, ek_comm comm,
                           MPI_Request *request)
{
    return MPI_Irecv(buf, n, t, source, tag, ek_on(comm), request);
}

static inline ek_outcome ek_probe(int source, int tag, ek_comm comm)
{
    ek_outcome o = {0};
    o.code = MPI_Probe(source, tag, ek_on(comm), &o.status);
    return o;
}

static inline ek_outcome ek_iprobe(int source, int tag, ek_comm comm)
{
    ek_outcome o = {0};
    o.code = MPI_Iprobe(source, tag, ek_on(comm), &o.value, &o.status);
    return o;
}

static inline ek_outcome ek_mprobe(int source, int tag, ek_comm comm, MPI_Message *message)
{
    ek_outcome o = {0};
    o.code = MPI_Mprobe(source, tag, ek_on(comm), message, &o.status);
    return o;
}

static inline ek_outcome ek_improbe(int source, int tag, ek_comm comm, MPI_Message *message)
{
    ek_outcome o = {0};
    o.code = MPI_Improbe(source, tag, ek_on(comm), &o.value, message, &o.status);
    return o;
}

static inline ek_outcome ek_mrecv(char *buf, int n, MPI_Datatype t, MPI_Message *message, uintptr_t from)
{
    ek_outcome o = {0};
    ek_from(from);
    o.code = MPI_Mrecv(buf, n, t, message, &o.status);
    return o;
}

/* Completion */

static inline ek_outcome ek_wait(MPI_Request *request, uintptr_t from)
{
    ek_outcome o = {0};
    ek_from(from);
    o.code = MPI_Wait(request, &o.status);
    return o;
}

static inline ek_outcome ek_test(MPI_Request *request, uintptr_t from)
{
    ek_outcome o = {0};
    ek_from(from);
    o.code = MPI_Test(request, &o.value, &o.status);
    return o;
}

static inline int ek_testall(int n, MPI_Request *requests, int *flag, MPI_Status *statuses, uintptr_t from)
{
    ek_from(from);
    return MPI_Testall(n, requests, flag, statuses);
}

static inline int ek_cancel(MPI_Request *request, uintptr_t from)
{
    ek_from(from);
    return MPI_Cancel(request);
}

static inline ek_outcome ek_waitany(int n, MPI_Request *requests, uintptr_t from)
{
    ek_outcome o = {0};
    ek_from(from);
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

/* Communicators */

static inline int ek_comm_dup(ek_comm comm, MPI_Comm *out)
{
    return MPI_Comm_dup(ek_on(comm), out);
}

static inline int ek_comm_split(ek_comm comm, int color, int key, MPI_Comm *out)
{
    return MPI_Comm_split(ek_on(comm), color, key, out);
}

static inline int ek_comm_split_type(ek_comm comm, int kind, int key, MPI_Comm *out)
{
    return MPI_Comm_split_type(ek_on(comm), kind, key, MPI_INFO_NULL, out);
}

static inline int ek_comm_create(ek_comm comm, MPI_Group group, MPI_Comm *out)
{
    return MPI_Comm_create(ek_on(comm), group, out);
}

static inline int ek_cart_create(ek_comm comm, int n, const int *dims, const int *periods, int reorder,
                                 MPI_Comm *out)
{
    return MPI_Cart_create(ek_on(comm), n, dims, periods, reorder, out);
}

static inline int ek_cart_sub(ek_comm comm, const int *keep, MPI_Comm *out)
{
    return MPI_Cart_sub(ek_on(comm), keep, out);
}

static inline int ek_comm_free(ek_comm comm)
{
    MPI_Comm handle = ek_on(comm);
    return MPI_Comm_free(&handle);
}

static inline int ek_comm_set_name(ek_comm comm, const char *name)
{
    return MPI_Comm_set_name(ek_on(comm), name);
}

/* Collectives */

static inline int ek_barrier(ek_comm comm)
{
    return MPI_Barrier(ek_on(comm));
}

static inline int ek_ibarrier(ek_comm comm, MPI_Request *request)
{
    return MPI_Ibarrier(ek_on(comm), request);
}

static inline int ek_bcast(char *buf, int n, MPI_Datatype t, int root, ek_comm comm)
{
    return MPI_Bcast(buf, n, t, root, ek_on(comm));
}

static inline int ek_ibcast(char *buf, int n, MPI_Datatype t, int root, ek_comm comm,
                            MPI_Request *request)
{
    return MPI_Ibcast(buf, n, t, root, ek_on(comm), request);
}

static inline int ek_reduce(const char *send, char *recv, int n, MPI_Datatype t, MPI_Op op, int root,
                            ek_comm comm)
{
    return MPI_Reduce(ek_or_in_place(send), recv, n, t, op, root, ek_on(comm));
}

static inline int ek_allreduce(const char *send, char *recv, int n, MPI_Datatype t, MPI_Op op,
                               ek_comm comm)
{
    return MPI_Allreduce(ek_or_in_place(send), recv, n, t, op, ek_on(comm));
}

static inline int ek_iallreduce(const char *send, char *recv, int n, MPI_Datatype t, MPI_Op op,
                                ek_comm comm, MPI_Request *request)
{
    return MPI_Iallreduce(ek_or_in_place(send), recv, n, t, op, ek_on(comm), request);
}

static inline int ek_reduce_scatter_block(const char *send, char *recv, int n, MPI_Datatype t,
                                          MPI_Op op, ek_comm comm)
{
    return MPI_Reduce_scatter_block(ek_or_in_place(send), recv, n, t, op, ek_on(comm));
}

static inline int ek_reduce_scatter(const char *send, char *recv, const int n[], MPI_Datatype t,
                                    MPI_Op op, ek_comm comm)
{
    return MPI_Reduce_scatter(ek_or_in_place(send), recv, n, t, op, ek_on(comm));
}

static inline int ek_scan(const char *send, char *recv, int n, MPI_Datatype t, MPI_Op op,
                          ek_comm comm)
{
    return MPI_Scan(ek_or_in_place(send), recv, n, t, op, ek_on(comm));
}

static inline int ek_exscan(const char *send, char *recv, int n, MPI_Datatype t, MPI_Op op,
                            ek_comm comm)
{
    return MPI_Exscan(ek_or_in_place(send), recv, n, t, op, ek_on(comm));
}

static inline int ek_gather(const char *send, int sn, char *recv, int rn, MPI_Datatype t, int root,
                            ek_comm comm)
{
    return MPI_Gather(send, sn, t, recv, rn, t, root, ek_on(comm));
}

static inline int ek_gatherv(const char *send, int sn, char *recv, const int *counts,
                             const int *displs, MPI_Datatype t, int root, ek_comm comm)
{
    return MPI_Gatherv(send, sn, t, recv, counts, displs, t, root, ek_on(comm));
}

static inline int ek_scatter(const char *send, int sn, char *recv, int rn, MPI_Datatype t, int root,
                             ek_comm comm)
{
    return MPI_Scatter(send, sn, t, recv, rn, t, root, ek_on(comm));
}

static inline int ek_scatterv(const char *send, const int *counts, const int *displs, char *recv,
                              int rn, MPI_Datatype t, int root, ek_comm comm)
{
    return MPI_Scatterv(send, counts, displs, t, recv, rn, t, root, ek_on(comm));
}

static inline int ek_allgather(const char *send, int sn, char *recv, int rn, MPI_Datatype t,
                               ek_comm comm)
{
    return MPI_Allgather(ek_or_in_place(send), sn, t, recv, rn, t, ek_on(comm));
}

static inline int ek_allgatherv(const char *send, int sn, char *recv, const int *counts,
                                const int *displs, MPI_Datatype t, ek_comm comm)
{
    return MPI_Allgatherv(send, sn, t, recv, counts, displs, t, ek_on(comm));
}

static inline int ek_alltoall(const char *send, char *recv, int n, MPI_Datatype t, ek_comm comm)
{
    return MPI_Alltoall(ek_or_in_place(send), n, t, recv, n, t, ek_on(comm));
}

static inline int ek_alltoallv(const char *send, const int *scounts, const int *sdispls, char *recv,
                               const int *rcounts, const int *rdispls, MPI_Datatype t, ek_comm comm)
{
    return MPI_Alltoallv(send, scounts, sdispls, t, recv, rcounts, rdispls, t, ek_on(comm));
}

/* Windows */

static inline int ek_win_create(char *base, MPI_Aint bytes, int unit, ek_comm comm, MPI_Win *win)
{
    return MPI_Win_create(base, bytes, unit, MPI_INFO_NULL, ek_on(comm), win);
}

static inline int ek_win_allocate_shared(MPI_Aint bytes, int unit, ek_comm comm, void *base, MPI_Win *win)
{
    return MPI_Win_allocate_shared(bytes, unit, MPI_INFO_NULL, ek_on(comm), base, win);
}

static inline int ek_win_free(ek_win win)
{
    MPI_Win handle = ek_over(win);
    return MPI_Win_free(&handle);
}

static inline int ek_win_fence(int assert, ek_win win)
{
    return MPI_Win_fence(assert, ek_over(win));
}

static inline int ek_win_lock(int kind, int rank, ek_win win)
{
    return MPI_Win_lock(kind, rank, 0, ek_over(win));
}

static inline int ek_win_unlock(int rank, ek_win win)
{
    return MPI_Win_unlock(rank, ek_over(win));
}

static inline int ek_win_lock_all(ek_win win)
{
    return MPI_Win_lock_all(0, ek_over(win));
}

static inline int ek_win_unlock_all(ek_win win)
{
    return MPI_Win_unlock_all(ek_over(win));
}

static inline int ek_win_flush(int rank, ek_win win)
{
    return MPI_Win_flush(rank, ek_over(win));
}

static inline int ek_win_flush_all(ek_win win)
{
    return MPI_Win_flush_all(ek_over(win));
}

static inline int ek_win_flush_local(int rank, ek_win win)
{
    return MPI_Win_flush_local(rank, ek_over(win));
}

static inline int ek_win_sync(ek_win win)
{
    return MPI_Win_sync(ek_over(win));
}

static inline int ek_put(const char *origin, int n, MPI_Datatype t, int target, MPI_Aint offset,
                         ek_win win)
{
    return MPI_Put(origin, n, t, target, offset, n, t, ek_over(win));
}

static inline int ek_get(char *origin, int n, MPI_Datatype t, int target, MPI_Aint offset,
                         ek_win win)
{
    return MPI_Get(origin, n, t, target, offset, n, t, ek_over(win));
}

static inline int ek_accumulate(const char *origin, int n, MPI_Datatype t, int target,
                                MPI_Aint offset, MPI_Op op, ek_win win)
{
    return MPI_Accumulate(origin, n, t, target, offset, n, t, op, ek_over(win));
}

static inline int ek_fetch_and_op(const char *origin, char *result, MPI_Datatype t, int target,
                                  MPI_Aint offset, MPI_Op op, ek_win win)
{
    return MPI_Fetch_and_op(origin, result, t, target, offset, op, ek_over(win));
}

static inline int ek_compare_and_swap(const char *origin, const char *compare, char *result,
                                      MPI_Datatype t, int target, MPI_Aint offset, ek_win win)
{
    return MPI_Compare_and_swap(origin, compare, result, t, target, offset, ek_over(win));
}

#endif
