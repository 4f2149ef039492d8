"""MPI calls from Python through mpi4py; prints how often each was made.

    mpirun -np 2 python3 calls.py

The methods with capital letters pass their arguments straight on, so each is
one call; the ones in lower case, which pickle, make several and are not used.
"""

import collections
import sys

import numpy as np
from mpi4py import MPI

counts = collections.Counter()


def call(name, method, *arguments, **named):
    """Calls an mpi4py method that makes the MPI call of this name, once."""
    result = method(*arguments, **named)
    counts[name] += 1
    return result


def point_to_point(comm, rank, size):
    left, right = (rank - 1) % size, (rank + 1) % size
    out, got = np.array([rank], "i"), np.array([-1], "i")
    for _ in range(10):
        request = call("MPI_Irecv", comm.Irecv, got, source=left)
        call("MPI_Send", comm.Send, out, dest=right)
        call("MPI_Wait", request.Wait)
        assert got[0] == left
    call("MPI_Sendrecv", comm.Sendrecv, out, right, recvbuf=got, source=left)
    assert got[0] == left

    requests = [
        call("MPI_Isend", comm.Isend, out, dest=right, tag=1),
        call("MPI_Irecv", comm.Irecv, got, source=left, tag=1),
    ]
    call("MPI_Waitall", MPI.Request.Waitall, requests)

    request = call("MPI_Isend", comm.Isend, out, dest=right, tag=2)
    status = MPI.Status()
    call("MPI_Probe", comm.Probe, MPI.ANY_SOURCE, 2, status)
    assert status.Get_source() == left
    call("MPI_Recv", comm.Recv, got, source=left, tag=2)
    call("MPI_Wait", request.Wait)

    persistent = call("MPI_Send_init", comm.Send_init, out, dest=right, tag=3)
    for _ in range(3):
        call("MPI_Start", persistent.Start)
        call("MPI_Recv", comm.Recv, got, source=left, tag=3)
        call("MPI_Wait", persistent.Wait)
    call("MPI_Request_free", persistent.Free)


def collectives(comm, rank, size):
    out, got = np.array([rank], "i"), np.array([-1], "i")
    everyone = np.arange(size, dtype="i")
    all_got = np.full(size, -1, "i")
    for _ in range(10):
        call("MPI_Barrier", comm.Barrier)
    root_value = np.array([7 if rank == 0 else -1], "i")
    call("MPI_Bcast", comm.Bcast, root_value)
    assert root_value[0] == 7
    call("MPI_Allreduce", comm.Allreduce, out, got)
    assert got[0] == everyone.sum()
    call("MPI_Allreduce", comm.Allreduce, MPI.IN_PLACE, got, op=MPI.MAX)
    assert got[0] == everyone.sum()
    call("MPI_Reduce", comm.Reduce, out, got)
    call("MPI_Gather", comm.Gather, out, all_got)
    assert rank != 0 or (all_got == everyone).all()
    call("MPI_Scatter", comm.Scatter, everyone, got)
    assert got[0] == rank
    call("MPI_Allgather", comm.Allgather, out, all_got)
    assert (all_got == everyone).all()
    call("MPI_Alltoall", comm.Alltoall, everyone, all_got)
    assert (all_got == rank).all()
    call("MPI_Scan", comm.Scan, out, got)
    assert got[0] == rank * (rank + 1) // 2
    request = call("MPI_Ibarrier", comm.Ibarrier)
    call("MPI_Wait", request.Wait)
    request = call("MPI_Iallreduce", comm.Iallreduce, out, got)
    call("MPI_Wait", request.Wait)
    assert got[0] == everyone.sum()


def communicators(comm, rank, size):
    half = call("MPI_Comm_split", comm.Split, rank % 2, rank)
    call("MPI_Barrier", half.Barrier)
    call("MPI_Comm_free", half.Free)
    grid = call("MPI_Cart_create", comm.Create_cart, [size], periods=[True])
    call("MPI_Barrier", grid.Barrier)
    call("MPI_Comm_free", grid.Free)


def windows(comm, rank, size):
    memory = np.full(1, -1, "i")
    window = call("MPI_Win_create", MPI.Win.Create, memory, memory.itemsize, comm=comm)
    call("MPI_Win_fence", window.Fence)
    call("MPI_Put", window.Put, np.array([rank], "i"), (rank + 1) % size)
    call("MPI_Win_fence", window.Fence)
    assert memory[0] == (rank - 1) % size
    call("MPI_Win_free", window.Free)


def main():
    # mpi4py called MPI_Init_thread when it was imported, and calls
    # MPI_Finalize when Python ends.
    counts.update(["MPI_Init_thread", "MPI_Finalize"])
    comm = call("MPI_Comm_dup", MPI.COMM_WORLD.Dup)
    rank, size = comm.Get_rank(), comm.Get_size()
    point_to_point(comm, rank, size)
    collectives(comm, rank, size)
    communicators(comm, rank, size)
    windows(comm, rank, size)
    call("MPI_Comm_free", comm.Free)
    # Every rank makes the same calls.
    if rank == 0:
        for name in sorted(counts):
            print(name, counts[name] * size)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
