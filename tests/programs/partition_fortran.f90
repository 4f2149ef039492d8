! partition_fortran.f90 - the module evenkeel: arrays that move with their ranges,
! halos, steps, jobs, and errors.
!
!     mpirun -np 3 partition_fortran
program partition_fortran
  use mpi
  use evenkeel
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64, real64, int32
  implicit none

  integer(int64), parameter :: items = 90
  integer, parameter :: rows = 4, halo = 2
  type(ek_partition) :: partition
  type(ek_array) :: grid, list, squared, words
  type(ek_halo) :: mirror
  type(ek_job) :: job
  type(ek_partition_options) :: options
  type(ek_job_options) :: cutting
  real(real64), pointer :: x(:, :)
  integer(int32), pointer :: n(:)
  integer(int64) :: first, last, i, round
  integer(int64), allocatable :: ends(:)
  real(real64), target :: squares(items)
  integer(int32), target :: all(items)
  integer :: rank, ranks, ierror, checked
  logical :: changed

  checked = 0
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)

  call ek_partition_create(MPI_COMM_WORLD, -1_int64, partition, ierror)
  call expect(ierror == EK_REFUSED .and. index(ek_error_text(), 'a partition of -1 items') > 0, 'no items')

  options%policy = EK_POLICY_PROPORTIONAL
  call ek_partition_create(MPI_COMM_WORLD, items, partition, options=options)
  call ek_array_create(partition, grid, 8 * rows, halo=int(halo, int64))
  call ek_array_create(partition, list, 4)
  call ek_partition_range(partition, first, last)
  call ek_array_pointer(grid, rows, x)
  call ek_array_pointer(list, n)
  do i = first, last
    x(:, i) = i
    n(i) = int(i * i, int32)
  end do
  call ek_array_create(partition, squared, 4)
  call ek_array_create_variable(partition, words)
  call ek_halo_create(partition, mirror, mirrored)
  call check()

  allocate (ends(ranks))
  do round = 1, 20
    do i = 1, ranks
      ends(i) = min(items, mod(round * 37, 80_int64) * i)
    end do
    ends(ranks) = items
    call ek_partition_set(partition, ends)
    call check()
  end do
  ends(ranks) = items + 1
  call ek_partition_set(partition, ends, ierror)
  call expect(ierror == EK_REFUSED, 'bounds past the end')
  do i = 1, ranks
    ends(i) = items * i / ranks
  end do
  call ek_partition_set(partition, ends(:merge(ranks - 1, ranks, rank == 0)), ierror)
  call expect(ierror == EK_REFUSED .and. index(ek_error_text(), 'ends of') > 0, 'an end that is missing on one rank')
  call ek_partition_set(partition, ends)
  call ek_partition_costs(partition, squares(:1), ierror)
  call expect(ierror == EK_REFUSED .and. index(ek_error_text(), 'costs of 1 items') > 0, 'costs that are missing')
  call ek_partition_start(partition)
  do round = 1, 3
    call ek_partition_step(partition, changed=changed)
    call check()
  end do
  call expect(len_trim(ek_partition_reason(partition)) > 0, 'a reason')
  call ek_array_gather(list, c_loc(all))
  call expect(count(all == [(int(i * i, int32), i = 1, items)]) == items, 'what was gathered')

  call ek_job_create(MPI_COMM_WORLD, job)
  call ek_job_run(job, items, square, c_loc(squares), 8)
  do i = 1, items
    call expect(squares(i) == real(i, real64)**2, 'a result of a job')
  end do
  call ek_job_run(job, items, fail, c_loc(squares), 8, ierror)
  call expect(ierror == EK_HOOK_FAILED, 'a job that fails')
  call ek_job_free(job)
  cutting%cut = c_funloc(cut)
  call ek_job_create(MPI_COMM_WORLD, job, options=cutting)
  call ek_job_run(job, items, square, c_loc(squares), 8, ierror)
  call expect(ierror == merge(EK_OK, EK_REFUSED, ranks == 1), 'a job that ranks cut otherwise')
  if (ranks > 1) call expect(index(ek_error_text(), 'cuts tasks otherwise on rank 1 than on rank 0') > 0, 'its words')
  call ek_job_free(job)
  call ek_partition_free(partition)
  if (rank == 0) print '(a, i0)', 'checked ', checked
  call MPI_Finalize(ierror)

contains

  subroutine expect(so, what)
    logical, intent(in) :: so
    character(*), intent(in) :: what

    checked = checked + 1
    if (so) return
    print '(a, i0, 2a)', 'rank ', rank, ': ', what
    call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
  end subroutine expect

  subroutine check()
    integer(int64) :: i

    call ek_partition_range(partition, first, last)
    call ek_array_exchange(grid)
    call ek_array_pointer(grid, rows, x)
    call ek_array_pointer(list, n)
    do i = first, last
      call expect(n(i) == i * i, 'an item of a list')
      call expect(ek_partition_owner(partition, i) == rank, 'an owner')
    end do
    call check_mirror()
    if (last < first) return
    do i = max(1_int64, first - halo), min(items, last + halo)
      call expect(all_are(x(:, i), real(i, real64)), 'an item of a grid')
    end do
  end subroutine check

  ! Item i needs item items + 1 - i, and item 1.
  integer(c_int) function mirrored(context, halo, first, count) bind(C)
    type(c_ptr), value :: context, halo
    integer(c_int64_t), value :: first, count
    integer(int64) :: i

    call ek_halo_need(halo, [1_int64, (items + 1 - i, i = first + 1, first + count)])
    mirrored = merge(1, 0, c_associated(context))
  end function mirrored

  subroutine check_mirror()
    integer(int32), pointer :: square(:), word(:)
    integer(int32), target :: written(items * 3)
    integer(int64) :: lengths(last - first + 1), i, place, bytes, at
    integer(int64), allocatable :: copies(:)
    type(c_ptr) :: where

    call ek_array_pointer(squared, square)
    at = 0
    do i = first, last
      square(i) = int(i * i, int32)
      lengths(i - first + 1) = 4 * mod(i, 3_int64)
      written(at + 1:at + mod(i, 3_int64)) = int(i, int32)
      at = at + mod(i, 3_int64)
    end do
    call ek_array_assign(words, lengths, c_loc(written))
    call ek_halo_exchange(mirror, squared)
    call ek_halo_exchange_begin(mirror, words)
    call ek_halo_exchange_end(mirror)
    call ek_array_pointer(squared, square)
    allocate (copies, source=ek_halo_copies(mirror))
    call expect(ubound(square, 1, kind=int64) == last + size(copies), 'the copies of an array')
    do i = 1, items
      place = ek_halo_index(mirror, i)
      if (i >= first .and. i <= last) call expect(place == i, 'the place of an own item')
      if (place == 0) then
        call expect(count(copies == i) == 0, 'an item that is not here')
        cycle
      end if
      call expect(square(place) == i * i, 'a copy')
      call ek_array_item(words, place, where, bytes)
      call expect(bytes == 4 * mod(i, 3_int64), 'the length of a copy')
      call c_f_pointer(where, word, [bytes / 4])
      call expect(count(word == i) == bytes / 4, 'the words of a copy')
    end do
    do i = first, last
      call expect(ek_halo_index(mirror, items + 1 - i) > 0, 'a copy that is needed')
    end do
  end subroutine check_mirror

  logical function all_are(x, value)
    real(real64), intent(in) :: x(:), value

    all_are = count(x == value) == size(x)
  end function all_are

  integer(c_int) function square(context, first, count, results) bind(C)
    type(c_ptr), value :: context, results
    integer(c_int64_t), value :: first, count
    real(real64), pointer :: to(:)
    integer(int64) :: i

    square = merge(1, 0, c_associated(context))
    call c_f_pointer(results, to, [count])
    do i = 1, count
      to(i) = real(first + i, real64)**2
    end do
  end function square

  ! On the ranks but 0 the first part is empty.
  integer(c_int) function cut(context, first, count, parts, ends) bind(C)
    type(c_ptr), value :: context
    integer(c_int64_t), value :: first, count
    integer(c_int), value :: parts
    integer(c_int64_t), intent(inout) :: ends(parts)

    cut = merge(1, 0, c_associated(context) .or. ends(parts) /= first + count)
    if (rank > 0) ends(1) = first
  end function cut

  integer(c_int) function fail(context, first, count, results) bind(C)
    type(c_ptr), value :: context, results
    integer(c_int64_t), value :: first, count

    fail = merge(1, 0, first >= 0 .or. count > 0 .or. c_associated(context) .or. c_associated(results))
  end function fail

end program partition_fortran
