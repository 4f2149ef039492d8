! What Fortran sends through mpif.h or mpi_f08, with blocking and nonblocking
! calls, to a rank that takes it in the order in which it was sent.
!
!	mpirun -np 2 shadow_fortran_f08 | shadow_fortran_mpifh
program shadow_fortran
#ifdef F08
  use mpi_f08
  implicit none
  type(MPI_Request) :: request
  type(MPI_Status) :: status
#else
  implicit none
  include 'mpif.h'
  integer :: request, status(MPI_STATUS_SIZE)
#endif
  integer, parameter :: messages = 50
  real(8) :: values(400)
  integer :: rank, i, wrong, ierror

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  wrong = 0
  do i = 1, messages
    if (rank == 0) then
      values = i
      call MPI_Send(values, 400, MPI_DOUBLE_PRECISION, 1, 3, MPI_COMM_WORLD, ierror)
      values = -i
      call MPI_Isend(values, 400, MPI_DOUBLE_PRECISION, 1, 4, MPI_COMM_WORLD, request, ierror)
      call MPI_Wait(request, status, ierror)
      values = 0
    else
      call MPI_Recv(values, 400, MPI_DOUBLE_PRECISION, 0, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierror)
      if (any(values /= i)) wrong = wrong + 1
      call MPI_Recv(values, 400, MPI_DOUBLE_PRECISION, 0, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierror)
      if (any(values /= -i)) wrong = wrong + 1
    end if
  end do
  call MPI_Finalize(ierror)
  if (wrong /= 0) stop 1
  print '(a)', 'done'
end program shadow_fortran
