! The calls of fortran_calls.inc through the module mpi.
#define HANDLE(kind) integer
#define STATUS integer, dimension(MPI_STATUS_SIZE)
#define STATUSES(n) integer, dimension(MPI_STATUS_SIZE, n)
#define C_ADDRESS integer
#define BASE_ADDRESS type(c_ptr)
#define SOURCE_OF(status) status(MPI_SOURCE)
program fortran_usempi
  use, intrinsic :: iso_c_binding, only: c_ptr
  use mpi
  use counted
  implicit none
#include "fortran_calls.inc"
end program fortran_usempi
