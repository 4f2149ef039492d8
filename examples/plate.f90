! plate.f90 - heat spreads over a plate, a part of which is of a material whose
! conductivity takes long to compute.
!
!     mpirun -np 2 plate [CYCLES] [even|balanced|COLUMNS]
!
! Columns of the plate are the items of a partition, with a halo of one column on
! either side. The costly material is a disc at the right: the ranks there get fewer
! columns, unless the partition is to stay even, or rank 0 is to have COLUMNS throughout
! and the others as many each. The checksum does not depend on who computed what.
program plate
  use mpi
  use evenkeel
  use, intrinsic :: iso_c_binding, only: c_loc
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none

  integer, parameter :: rows = 400
  integer(int64), parameter :: columns = 400
  real(real64), parameter :: rate = 0.2_real64
  type(ek_partition) :: partition
  type(ek_partition_options) :: options
  type(ek_array) :: now, next
  real(real64), pointer :: a(:, :), b(:, :)
  real(real64), allocatable :: computed(:), mean(:), longest(:)
  real(real64) :: began, time
  character(len=16) :: argument
  integer(int64) :: first, last
  integer(int64) :: left
  integer :: rank, ranks, cycles, cycle, settled, ierror

  cycles = 80
  left = 0
  if (command_argument_count() > 0) then
    call get_command_argument(1, argument)
    read (argument, *) cycles
  end if
  call get_command_argument(2, argument)
  if (verify(trim(argument), '0123456789') == 0 .and. argument /= '') read (argument, *) left
  if (argument == 'even' .or. left > 0) options%policy = EK_POLICY_STATIC
  options%cycles = cycles

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  call ek_partition_create(MPI_COMM_WORLD, columns, partition, options=options)
  if (left > 0) call share(left)
  call ek_array_create(partition, now, 8 * rows, halo=1_int64)
  call ek_array_create(partition, next, 8 * rows)
  allocate (computed(cycles), mean(cycles), longest(cycles))
  call set_up()
  call ek_partition_start(partition)
  time = MPI_Wtime()
  do cycle = 1, cycles
    call ek_array_exchange(now)
    began = MPI_Wtime()
    call advance()
    computed(cycle) = MPI_Wtime() - began
    call ek_partition_step(partition)
  end do
  time = MPI_Wtime() - time

  call print_checksum()
  call MPI_Reduce(computed, mean, cycles, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
  call MPI_Reduce(computed, longest, cycles, MPI_DOUBLE_PRECISION, MPI_MAX, 0, MPI_COMM_WORLD, ierror)
  mean = mean / ranks
  settled = 0
  do while (settled < cycles)
    if (longest(settled + 1) <= 1.05_real64 * mean(settled + 1)) exit
    settled = settled + 1
  end do
  if (rank == 0) print '(a, f0.6, a, f0.6, a, i0, a, f0.6)', 'time ', time, ' ideal ', sum(mean), ' settled ', settled, &
    ' imbalance ', sum(longest(cycles / 2 + 1:)) / sum(mean(cycles / 2 + 1:))
  call ek_partition_free(partition)
  call MPI_Finalize(ierror)

contains

  ! Rank 0 has so many columns, the others share the rest.
  subroutine share(left)
    integer(int64), intent(in) :: left
    integer(int64) :: last(ranks), r

    last = [(left + (columns - left) * r / max(1, ranks - 1), r = 0, ranks - 1)]
    last(ranks) = columns
    call ek_partition_set(partition, last)
  end subroutine share

  subroutine set_up()
    integer(int64) :: i, j

    call ek_partition_range(partition, first, last)
    call ek_array_pointer(now, rows, a)
    call ek_array_pointer(next, rows, b)
    do j = first, last
      do i = 1, rows
        a(i, j) = merge(100, 0, mod(i / 40 + j / 40, 2_int64) == 0)
      end do
      b(:, j) = a(:, j) ! so that the first cycle does not touch it for the first time
    end do
  end subroutine set_up

  logical function costly(i, j)
    integer(int64), intent(in) :: i, j

    costly = (i - rows / 2)**2 + (j - 3 * columns / 4)**2 < (columns / 5)**2
  end function costly

  ! One explicit step; the plate's rim stays as it is.
  subroutine advance()
    integer(int64) :: i, j
    real(real64) :: flow

    call ek_partition_range(partition, first, last)
    call ek_array_pointer(now, rows, a)
    call ek_array_pointer(next, rows, b)
    do j = first, last
      b(:, j) = a(:, j)
      if (j == 1 .or. j == columns) cycle
      do i = 2, rows - 1
        flow = a(i - 1, j) + a(i + 1, j) + a(i, j - 1) + a(i, j + 1) - 4 * a(i, j)
        if (costly(i, j)) flow = flow * conductivity(a(i, j))
        b(i, j) = a(i, j) + rate * flow
      end do
    end do
    do j = first, last ! of whole arrays, a copy would be made in between
      a(:, j) = b(:, j)
    end do
  end subroutine advance

  ! Falls with the temperature t: the solution k of k = exp(-k t / 200).
  real(real64) function conductivity(t) result(k)
    real(real64), intent(in) :: t
    integer :: i

    k = 1
    do i = 1, 8
      k = k - (k - exp(-k * t / 200)) / (1 + t / 200 * exp(-k * t / 200))
    end do
  end function conductivity

  subroutine print_checksum()
    real(real64), allocatable, target :: all(:, :)
    real(real64) :: total
    integer(int64) :: i, j

    allocate (all(rows, columns))
    call ek_array_gather(now, c_loc(all))
    total = 0
    do j = 1, columns
      do i = 1, rows
        total = total + all(i, j) * (1 + mod(i + j, 5_int64))
      end do
    end do
    if (rank == 0) print '(a, es24.16e3)', 'checksum ', total
  end subroutine print_checksum

end program plate
