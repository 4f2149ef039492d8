! needed_fortran.f90 - calls nothing of MPI that libevenkeel.so does not define, and is linked with --as-needed: MPI's
! own libraries must be there all the same.
!
!     mpirun -np 2 needed_fortran
program needed_fortran
  use mpi
  use evenkeel
  use, intrinsic :: iso_fortran_env, only: int64
  implicit none
  type(ek_partition) :: partition
  integer(int64) :: first, last, items
  integer :: ierror

  call MPI_Init(ierror)
  call ek_partition_create(MPI_COMM_WORLD, 90_int64, partition)
  call ek_partition_range(partition, first, last)
  call MPI_Allreduce(last - first + 1, items, 1, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD, ierror)
  print '(a, i0)', 'items ', items
  call ek_partition_free(partition)
  call MPI_Finalize(ierror)
end program needed_fortran
