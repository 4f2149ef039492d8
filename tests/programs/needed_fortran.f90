! needed_fortran.f90 - calls nothing of MPI that libevenkeel.so does not define. Linked as evenkeel.pc says it has MPI's
! own libraries all the same, though gfortran has the linker leave out what nothing refers to (--as-needed).
!
!     mpirun -np 2 needed_fortran
program needed_fortran
#ifdef F08
  use mpi_f08, only: MPI_Init, MPI_Finalize, MPI_COMM_WORLD
#else
  use mpi
#endif
  use evenkeel
  use, intrinsic :: iso_fortran_env, only: int64
  implicit none
  type(ek_partition) :: partition
  integer(int64) :: first, last
  integer :: ierror

  call MPI_Init(ierror)
#ifdef F08
  call ek_partition_create(MPI_COMM_WORLD%MPI_VAL, 90_int64, partition)
#else
  call ek_partition_create(MPI_COMM_WORLD, 90_int64, partition)
#endif
  call ek_partition_range(partition, first, last)
  if (first == 1) print '(a, i0)', 'items ', last
  call ek_partition_free(partition)
  call MPI_Finalize(ierror)
end program needed_fortran
