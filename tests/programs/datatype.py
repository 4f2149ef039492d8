"""Derived datatypes of mpi4py: columns of a matrix, and a NumPy record."""
from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
peer = 1 - comm.Get_rank()

matrix = np.arange(30 * 40, dtype="d").reshape(30, 40)
column = MPI.DOUBLE.Create_vector(30, 1, 40).Commit()
got = np.zeros(30)
comm.Sendrecv([matrix.ravel()[7:], 1, column], peer, recvbuf=got, source=peer)
assert (got == matrix[:, 7]).all()

record = np.dtype([("a", "i4"), ("b", "f8")], align=True)
values = np.zeros(1000, dtype=record)
values["a"], values["b"] = np.arange(1000), np.arange(1000) * 0.5
kind = MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.INT32_T, MPI.DOUBLE]).Create_resized(0, record.itemsize).Commit()
back = np.zeros(1000, dtype=record)
comm.Sendrecv([values, 1000, kind], peer, recvbuf=[back, 1000, kind], source=peer)
assert (back == values).all()
column.Free()
kind.Free()
