! The calls of fortran_calls.inc through the module mpi_f08.
#define HANDLE(kind) type(kind)
#define STATUS type(MPI_Status)
#define STATUSES(n) type(MPI_Status), dimension(n)
#define C_ADDRESS type(c_ptr)
#define BASE_ADDRESS type(c_ptr)
#define SOURCE_OF(status) status%MPI_SOURCE
#define OPTIONAL_IERROR
program fortran_f08
  use, intrinsic :: iso_c_binding, only: c_ptr
  use mpi_f08
  use counted
  implicit none
#include "fortran_calls.inc"
end program fortran_f08
