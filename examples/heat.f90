! heat.f90 - heat spreads over a plate, part of which is of a material whose
! conductivity depends on its temperature and takes longer to compute.
!
!     mpirun -np 4 heat [STEPS]
!
! The plate is cut into blocks of columns of equal width. The costly material is
! a disc in its right half, so the ranks on the right compute for longer, and
! their neighbours wait for their halo columns. Prints the mean and the highest
! temperature now and then; the output depends on STEPS alone, up to rounding.
program heat
  use mpi_f08
  implicit none

  integer, parameter :: rows = 480, all_columns = 480
  double precision, parameter :: rate = 0.2d0
  double precision, allocatable, asynchronous :: now(:, :) ! received into while in use
  double precision, allocatable :: next(:, :)
  logical, allocatable :: costly(:, :)
  integer :: rank, ranks, left, right, first, columns, steps, step

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call set_up()
  if (rank == 0) write (*, '(a, i0, a, i0, a, i0, a)') 'plate of ', rows, ' x ', all_columns, ' on ', ranks, ' ranks'
  do step = 1, steps
    call exchange_columns()
    call advance()
    if (mod(step, 100) == 0) call print_temperatures()
  end do
  call MPI_Finalize()

contains

  ! Columns 1 .. columns are ours, 0 and columns + 1 are the neighbours' edges.
  subroutine set_up()
    character(32) :: argument
    integer :: i, j

    steps = 800
    if (command_argument_count() > 0) then
      call get_command_argument(1, argument)
      read (argument, *) steps
    end if
    first = all_columns * rank / ranks + 1
    columns = all_columns * (rank + 1) / ranks - first + 1
    left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
    right = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)

    allocate (now(0:rows + 1, 0:columns + 1), next(0:rows + 1, 0:columns + 1), costly(rows, columns))
    now = 0
    do j = 1, columns
      do i = 1, rows
        costly(i, j) = (i - rows / 2)**2 + (first + j - 1 - 3 * all_columns / 4)**2 < (all_columns / 5)**2
        if (mod(i / 40 + (first + j - 1) / 40, 2) == 0) now(i, j) = 100
      end do
    end do
    next = now
  end subroutine set_up

  subroutine exchange_columns()
    type(MPI_Request) :: requests(4)

    call MPI_Irecv(now(:, 0), rows + 2, MPI_DOUBLE_PRECISION, left, 0, MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(now(:, columns + 1), rows + 2, MPI_DOUBLE_PRECISION, right, 0, MPI_COMM_WORLD, requests(2))
    call MPI_Isend(now(:, 1), rows + 2, MPI_DOUBLE_PRECISION, left, 0, MPI_COMM_WORLD, requests(3))
    call MPI_Isend(now(:, columns), rows + 2, MPI_DOUBLE_PRECISION, right, 0, MPI_COMM_WORLD, requests(4))
    call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE)
  end subroutine exchange_columns

  ! One explicit step; the plate's rim stays cold.
  subroutine advance()
    integer :: i, j
    double precision :: flow

    do j = 1, columns
      do i = 1, rows
        flow = now(i - 1, j) + now(i + 1, j) + now(i, j - 1) + now(i, j + 1) - 4 * now(i, j)
        if (costly(i, j)) then
          next(i, j) = now(i, j) + rate * conductivity(now(i, j)) * flow
        else
          next(i, j) = now(i, j) + rate * flow
        end if
      end do
    end do
    now(1:rows, 1:columns) = next(1:rows, 1:columns)
  end subroutine advance

  ! Falls with the temperature t: the solution k of k = exp(-k t / 200).
  double precision function conductivity(t) result(k)
    double precision, intent(in) :: t
    integer :: i

    k = 1
    do i = 1, 8
      k = k - (k - exp(-k * t / 200)) / (1 + t / 200 * exp(-k * t / 200))
    end do
  end function conductivity

  subroutine print_temperatures()
    double precision :: total, highest

    call MPI_Reduce(sum(now(1:rows, 1:columns)), total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD)
    call MPI_Reduce(maxval(now(1:rows, 1:columns)), highest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, 0, MPI_COMM_WORLD)
    if (rank == 0) write (*, '(a, i5, a, f10.6, a, f10.6)') 'step ', step, '  mean ', &
      total / (dble(rows) * all_columns), '  highest ', highest
  end subroutine print_temperatures

end program heat
