! The calls of fortran_calls.inc through mpif.h.
#define HANDLE(kind) integer
#define STATUS integer, dimension(MPI_STATUS_SIZE)
#define STATUSES(n) integer, dimension(MPI_STATUS_SIZE, n)
#define C_ADDRESS integer
#define BASE_ADDRESS integer(MPI_ADDRESS_KIND)
#define SOURCE_OF(status) status(MPI_SOURCE)
program fortran_mpifh
  use counted
  implicit none
  include 'mpif.h'
#include "fortran_calls.inc"
end program fortran_mpifh
