"""Much of mpi4py, seeded, with what comes of it printed by rank 0.

    mpirun -np 3 python3 mpi4py_many.py [ROUNDS]

Each part draws what it does from the same random numbers on every rank, and
ends in one line: its name and a hash of all that the ranks received.
"""

import hashlib
import os
import sys
import tempfile

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
right, left = (rank + 1) % size, (rank - 1) % size


def datatypes(draw):
    """Derived datatypes of doubles, each with the doubles that it spans."""
    blocks, width, stride = (int(draw.integers(1, n)) for n in (9, 5, 12))
    stride += width
    yield MPI.DOUBLE.Create_vector(blocks, width, stride), blocks * stride
    places = np.cumsum(draw.integers(3, 9, blocks)).tolist()
    yield MPI.DOUBLE.Create_indexed(draw.integers(1, 4, blocks).tolist(), places), places[-1] + 4
    yield MPI.DOUBLE.Create_indexed_block(2, places), places[-1] + 2
    yield MPI.DOUBLE.Create_hvector(blocks, width, -8 * stride), 0  # placed at its end by the caller
    shape = draw.integers(3, 7, 3)
    inner = [int(draw.integers(1, n)) for n in shape]
    starts = [int(draw.integers(0, n - i + 1)) for n, i in zip(shape, inner)]
    yield MPI.DOUBLE.Create_subarray(shape.tolist(), inner, starts), int(np.prod(shape))
    pair = MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.INT, MPI.DOUBLE])
    yield pair.Create_resized(0, 24), 3
    yield MPI.DOUBLE.Create_vector(2, 1, 3).Create_resized(0, 16).Create_contiguous(blocks), 2 * blocks + 4


def exchange(draw, way):
    """Sends around the ring, in a way of its own, data of each datatype."""
    for kind, span in datatypes(draw):
        kind.Commit()
        count = int(draw.integers(1, 6))
        room = 4096
        at = room // 2 * 8  # bytes: lower bounds may be negative
        source = np.random.default_rng(rank).random(room)
        target = np.full(room, -1.0)
        send, receive = ([a.view(np.byte)[at:], count, kind] for a in (source, target))
        if kind.Get_true_extent()[0] < 0:
            send, receive = ([memoryview(a.view(np.byte)), count, kind] for a in (source, target))
            kind = way_at_end(kind, room, send, receive)
        way(send, receive)
        yield target
        kind.Free()


def way_at_end(kind, room, send, receive):
    """A datatype that goes backwards, moved up to the middle of the buffer."""
    moved = MPI.Datatype.Create_hindexed(kind, [1], [room // 2 * 8]).Commit()
    kind.Free()
    send[1] = receive[1] = 1
    send[2] = receive[2] = moved
    return moved


def blocking(send, receive):
    status = MPI.Status()
    if rank % 2 == 0:
        world.Send(send, right, 7)
        world.Recv(receive, left, 7, status)
    else:
        world.Recv(receive, MPI.ANY_SOURCE, 7, status)
        world.Send(send, right, 7)
    assert status.Get_count(receive[2]) == receive[1]


def nonblocking(send, receive):
    requests = [world.Irecv(receive, left, 8), world.Isend(send, right, 8)]
    MPI.Request.Waitall(requests)


def persistent(send, receive):
    requests = [world.Recv_init(receive, left, 9), world.Send_init(send, right, 9)]
    for _ in range(3):
        MPI.Prequest.Startall(requests)
        MPI.Request.Waitall(requests)
    for request in requests:
        request.Free()


def packed(send, receive):
    kind, count = send[2], send[1]
    if kind.Get_true_extent()[0] != 0:
        return blocking(send, receive)
    span = count * kind.Get_extent()[1]  # Pack takes as many as the buffer has room for
    box, other = bytearray(kind.Pack_size(count, world)), bytearray(kind.Pack_size(count, world))
    length = kind.Pack(send[0][:span], box, 0, world)
    world.Sendrecv([box, length, MPI.PACKED], right, 1, [other, length, MPI.PACKED], left, 1)
    kind.Unpack(other, 0, receive[0][:span], world)


def broadcast(send, receive):
    world.Bcast(send, 0)
    world.Sendrecv(send, right, 2, receive, left, 2)


def put(send, receive):
    window = MPI.Win.Create(receive[0], comm=world)
    window.Fence()
    window.Put([send[0], send[1], send[2]], right, [0, receive[1], receive[2]])
    window.Fence()
    window.Free()


def objects(draw):
    """Python objects, whose sizes go from a few bytes to beyond what is eager."""
    for length in draw.integers(0, 5000, 20):
        letter = {"from": rank, "words": list(range(int(length)))}
        request = world.isend(letter, right, 3)
        got = world.recv(source=left, tag=3)
        request.wait()
        yield np.array([got["from"], sum(got["words"])], float)
    yield np.array(world.allgather(rank * 2), float)
    yield np.array([sum(world.alltoall([rank * size + i for i in range(size)]))], float)


def communicators(draw):
    """Many communicators, with a barrier and a reduction on each."""
    for colour in draw.integers(1, 4, 12):
        comm = world.Split(rank % int(colour), -rank)
        for _ in range(5):
            comm.Barrier()
        total = np.zeros(1)
        comm.Allreduce(np.array([rank + 1.0]), total)
        comm.Free()
        yield total
    cart = world.Create_cart([size], [True])
    source, dest = cart.Shift(0, 1)
    yield np.array([cart.sendrecv(rank, dest, source=source)], float)
    cart.Free()


def file(draw):
    """A file that the ranks write and read in stripes."""
    path = world.bcast(os.path.join(tempfile.mkdtemp(), "data") if rank == 0 else None)
    stripes = MPI.DOUBLE.Create_vector(10, 3, 3 * size).Commit()
    handle = MPI.File.Open(world, path, MPI.MODE_RDWR | MPI.MODE_CREATE)
    handle.Set_view(24 * rank, MPI.DOUBLE, stripes)
    handle.Write_all(np.random.default_rng(rank).random(30))
    handle.Sync()
    world.Barrier()
    back = np.zeros(30)
    handle.Read_at_all(0, back)
    handle.Close()
    stripes.Free()
    if rank == 0:
        os.remove(path)
        os.rmdir(os.path.dirname(path))
    yield back


def errors(draw):
    """What MPI refuses, it refuses with the same class and text."""
    comm = world.Dup()
    vector = MPI.DOUBLE.Create_vector(2, 1, 2)  # not committed
    for wrong in (
        lambda: comm.Send([np.zeros(1), MPI.DOUBLE], size + 5, 0),
        lambda: comm.Send([np.zeros(1), MPI.DOUBLE], 0, -5),
        lambda: comm.Send([np.zeros(4), 1, vector], 0, 0),
        lambda: comm.Isend([np.zeros(4), 1, MPI.DATATYPE_NULL], 0, 0),
        lambda: MPI.COMM_NULL.Barrier(),
    ):
        try:
            wrong()
            yield np.zeros(1)
        except (MPI.Exception, ValueError, KeyError) as error:
            yield np.frombuffer(str(error).encode().ljust(800, b" ")[:800], np.double)
    vector.Free()
    comm.Free()


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    ways = (blocking, nonblocking, persistent, packed, broadcast, put)
    parts = [(way.__name__, lambda draw, way=way: exchange(draw, way)) for way in ways]
    parts += [(part.__name__, part) for part in (objects, communicators, file, errors)]
    for seed in range(rounds):
        for name, part in parts:
            seen = hashlib.sha256()
            for array in part(np.random.default_rng(seed)):
                seen.update(array.tobytes())
            digests = world.gather(seen.hexdigest())
            if rank == 0:
                print(name, seed, hashlib.sha256("".join(digests).encode()).hexdigest()[:16])


main()
