"""Calls of mpi4py from all kinds of places in Python; prints where they are.

    mpirun -np N python3 sites.py

Rank 0 prints a line for each place: site CALL FUNCTION LINE CALLS.
"""

import collections
import sys
import threading

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
places = collections.Counter()


def here(call):
    """Notes that its caller makes this call on the line that it is on."""
    frame = sys._getframe(1)
    places[call, frame.f_code.co_qualname, frame.f_lineno] += 1
    return comm


def meet(times):
    for _ in range(times):
        here("MPI_Barrier").Barrier()


def deep(depth):
    if depth == 0:
        here("MPI_Barrier").Barrier()
    else:
        deep(depth - 1)


def each(times):
    for i in range(times):
        here("MPI_Barrier").Barrier()
        yield i


class Solver:
    def __init__(self):
        self.data = np.zeros(4)

    def exchange(self):
        here("MPI_Sendrecv"); comm.Sendrecv(self.data, (comm.rank + 1) % comm.size, recvbuf=self.data.copy(), source=(comm.rank - 1) % comm.size)

    def reduce(self):
        def again():
            here("MPI_Allreduce").Allreduce(MPI.IN_PLACE, self.data)

        here("MPI_Allreduce").Allreduce(MPI.IN_PLACE, self.data)
        again()


here("MPI_Barrier").Barrier()
meet(5000)
meet(1)
deep(30)
assert list(each(3)) == [0, 1, 2]
assert sum(comm.size for _ in range(7) if not here("MPI_Barrier").Barrier()) == 7 * comm.size
solver = Solver()
for _ in range(20):
    solver.exchange()
    solver.reduce()
(lambda: here("MPI_Barrier").Barrier())()
exec(compile("\n\nhere('MPI_Barrier').Barrier()", "made at run time", "exec"))
assert here("MPI_Allgather").Allgather(
    np.array([comm.rank], "i"),
    np.empty(comm.size, "i"),
) is None

# While one thread is in MPI, another one has the interpreter.
other = threading.Thread(target=meet, args=(50,))
other.start()
x = 0
while other.is_alive():
    x += 1
other.join()

if comm.rank == 0:
    for (call, function, line), calls in places.items():
        print("site", call, function, line, calls)
