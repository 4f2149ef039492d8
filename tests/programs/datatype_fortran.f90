! Derived datatypes of Fortran, by module mpi or mpi_f08: a face of an array, and
! its duplicate.
program datatype_fortran
#ifdef F08
  use mpi_f08
  implicit none
  type(MPI_Datatype) :: plane, twin
  type(MPI_Status) :: status
#else
  use mpi
  implicit none
  integer :: plane, twin, status(MPI_STATUS_SIZE)
#endif
  integer, parameter :: n = 12
  double precision :: field(n, n, n), face(n, n)
  integer :: ierror, rank, i, j, k

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  do k = 1, n
    do j = 1, n
      do i = 1, n
        field(i, j, k) = i + 100*j + 10000*k
      end do
    end do
  end do
  call MPI_Type_create_subarray(3, [n, n, n], [1, n, n], [4, 0, 0], MPI_ORDER_FORTRAN, MPI_DOUBLE_PRECISION, plane, ierror)
  call MPI_Type_commit(plane, ierror)
  call MPI_Type_dup(plane, twin, ierror)
  call MPI_Sendrecv(field, 1, plane, 1 - rank, 1, face, n*n, MPI_DOUBLE_PRECISION, 1 - rank, 1, MPI_COMM_WORLD, status, ierror)
  if (any(face /= field(5, :, :))) print *, 'a wrong face'
  field = 0
  call MPI_Sendrecv(face, n*n, MPI_DOUBLE_PRECISION, 1 - rank, 1, field, 1, twin, 1 - rank, 1, MPI_COMM_WORLD, status, ierror)
  if (any(field(5, :, :) /= face) .or. count(field /= 0) /= n*n) print *, 'a wrong field'
  call MPI_Type_free(plane, ierror)
  call MPI_Type_free(twin, ierror)
  call MPI_Finalize(ierror)
end program
