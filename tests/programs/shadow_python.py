"""What mpi4py sends, from a buffer and as a pickle.

    mpirun -np 2 python3 shadow_python.py
"""

import numpy as np
from mpi4py import MPI

MESSAGES = 50
comm = MPI.COMM_WORLD
values = np.zeros(400)
for i in range(MESSAGES):
    if comm.rank == 0:
        values[:] = i
        comm.Send(values, dest=1, tag=3)
        values[:] = -i
        comm.Isend(values, dest=1, tag=4).Wait()
        values[:] = 0
        comm.send({"number": i, "text": "x" * 1000}, dest=1, tag=5)
    else:
        comm.Recv(values, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG)
        assert (values == i).all()
        comm.Recv(values, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG)
        assert (values == -i).all()
        assert comm.recv(source=MPI.ANY_SOURCE, tag=5) == {"number": i, "text": "x" * 1000}
print("done")
