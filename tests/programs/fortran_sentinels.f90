! Constants that are addresses in Fortran, where a tool that reads what they
! stand for would read nonsense: MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE, MPI_IN_PLACE.
!
!	mpirun -np 3 fortran_sentinels
!
! Rank 0 receives from any rank, with a status and without, through mpi_f08 and
! through mpi; the sender is rank 2.
subroutine receive_through_mpi()
  use mpi
  implicit none
  integer :: word, error, i, words(2), requests(2), info(MPI_STATUS_SIZE), infos(MPI_STATUS_SIZE, 2)

  call MPI_Recv(word, 1, MPI_INTEGER, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, info, error)
  call MPI_Recv(word, 1, MPI_INTEGER, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  do i = 1, 2
    call MPI_Irecv(words(i), 1, MPI_INTEGER, MPI_ANY_SOURCE, 7 + i, MPI_COMM_WORLD, requests(i), error)
  end do
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
  do i = 1, 2
    call MPI_Irecv(words(i), 1, MPI_INTEGER, MPI_ANY_SOURCE, 9 + i, MPI_COMM_WORLD, requests(i), error)
  end do
  call MPI_Waitall(2, requests, infos, error)
  call MPI_Irecv(word, 1, MPI_INTEGER, MPI_ANY_SOURCE, 12, MPI_COMM_WORLD, requests(1), error)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
end subroutine receive_through_mpi

program fortran_sentinels
  use mpi_f08
  implicit none
  external receive_through_mpi
  type(MPI_Status) :: info, infos(1)
  type(MPI_Request) :: requests(1)
  integer :: rank, word, words(3), tag

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  word = rank
  words = -1
  if (rank == 2) then
    do tag = 1, 12
      call MPI_Send(word, 1, MPI_INTEGER, 0, tag, MPI_COMM_WORLD)
    end do
  else if (rank == 0) then
    call MPI_Recv(word, 1, MPI_INTEGER, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, info)
    call MPI_Recv(word, 1, MPI_INTEGER, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Irecv(word, 1, MPI_INTEGER, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, requests(1))
    call MPI_Waitall(1, requests, MPI_STATUSES_IGNORE)
    call MPI_Irecv(word, 1, MPI_INTEGER, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, requests(1))
    call MPI_Waitall(1, requests, infos)
    call MPI_Irecv(word, 1, MPI_INTEGER, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, requests(1))
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    call receive_through_mpi()
  end if
  word = rank
  if (rank == 0) then
    words(1) = 0
    call MPI_Gather(MPI_IN_PLACE, 7, MPI_DATATYPE_NULL, words, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
    if (any(words /= [0, 1, 2])) error stop 'gather'
  else
    call MPI_Gather(word, 1, MPI_INTEGER, words, 7, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD)
  end if
  call MPI_Finalize()
end program fortran_sentinels
