! What late_fortran.c loads.
subroutine late_barriers(n) bind(C)
  use, intrinsic :: iso_c_binding, only: c_int
  use mpi
  implicit none
  integer(c_int), value :: n
  integer :: i, error

  call MPI_Pcontrol(1)
  do i = 1, n
    error = -1
    call MPI_Barrier(MPI_COMM_WORLD, error)
    if (error /= MPI_SUCCESS) error stop 'late_fortran: no barrier'
  end do
end subroutine late_barriers
