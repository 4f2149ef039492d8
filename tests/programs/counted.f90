! Counts of MPI calls made from Fortran, the twin of counted.h. Everything here
! goes through PMPI, so tools do not see it.
module counted
  implicit none
  include 'mpif.h'
  private
  public :: made, expect, count_and_finalize

  integer, parameter :: max_functions = 256, name_length = 48
  character(name_length) :: names(max_functions) = ''
  integer :: calls(max_functions) = 0

contains

  ! Notes a call that was just made, and ends the job if it failed.
  subroutine made(name, error)
    character(*), intent(in) :: name
    integer, intent(in) :: error
    integer :: i

    if (error /= MPI_SUCCESS) call give_up(name // ' failed')
    do i = 1, max_functions
      if (names(i) == '') names(i) = name
      if (names(i) == name) exit
    end do
    if (i > max_functions) call give_up('no room to count ' // name)
    calls(i) = calls(i) + 1
  end subroutine made

  ! Ends the job if a result is not as it should be.
  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what

    if (.not. holds) call give_up('not so: ' // what)
  end subroutine expect

  subroutine give_up(why)
    character(*), intent(in) :: why
    integer :: error

    write (0, '(a)') why
    call PMPI_Abort(MPI_COMM_WORLD, 1, error)
  end subroutine give_up

  ! Prints "MPI_Xxx n" on rank 0, summed over the ranks, which must all have
  ! made the same kinds of calls in the same order, and finalizes.
  subroutine count_and_finalize()
    integer :: i, rank, error, total(max_functions)

    call made('MPI_Finalize', MPI_SUCCESS)
    call PMPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call PMPI_Reduce(calls, total, max_functions, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, error)
    if (rank == 0) then
      do i = 1, count(names /= '')
        write (*, '(a, 1x, i0)') trim(names(i)), total(i)
      end do
      flush (6)
    end if
    call MPI_Finalize(error)
  end subroutine count_and_finalize

end module counted
