! evenkeel.F90 - the module evenkeel: partitions that resize, and jobs that are
! split, for Fortran programs. What each call does stands in evenkeel.h.
!
!     use evenkeel
!     type(ek_partition) :: partition
!     type(ek_array) :: array
!     real(real64), pointer :: x(:)
!
!     call ek_partition_create(MPI_COMM_WORLD, items, partition, ierror)
!     call ek_array_create(partition, array, storage_size(1.0_real64) / 8, ierror)
!     do cycle = 1, cycles
!       call ek_partition_range(partition, first, last)
!       call ek_array_pointer(array, x)              ! x(first:last)
!       ...
!       call ek_partition_step(partition, ierror)    ! a barrier; moves what has to be moved
!     end do
!
! Items are numbered from 1 here. A communicator is the integer of `use mpi`, or
! comm%MPI_VAL of `use mpi_f08`. ierror is 0, or one of ek_result, whose words
! ek_error_text gives; without it, what goes wrong ends the program with these words.
module evenkeel
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64, error_unit
  implicit none
  private

  type, public :: ek_partition
    type(c_ptr) :: c = c_null_ptr
  end type ek_partition

  ! Knows its partition: pointers to it have the numbers of the items as bounds.
  type, public :: ek_array
    type(c_ptr) :: c = c_null_ptr
    type(c_ptr) :: partition = c_null_ptr
    integer(int64) :: halo = 0
  end type ek_array

  type, public :: ek_halo
    type(c_ptr) :: c = c_null_ptr
    type(c_ptr) :: partition = c_null_ptr
  end type ek_halo

  type, public :: ek_job
    type(c_ptr) :: c = c_null_ptr
  end type ek_job

  integer(c_int), parameter, public :: EK_OK = 0, EK_INACTIVE = 1, EK_REFUSED = 2, EK_NO_MEMORY = 3, &
    EK_HOOK_FAILED = 4, EK_NO_HISTORY = 5, EK_MPI_FAILED = 6
  integer(c_int), parameter, public :: EK_POLICY_AUTO = 0, EK_POLICY_PAIRWISE = 1, EK_POLICY_FASTEST = 2, &
    EK_POLICY_PROPORTIONAL = 3, EK_POLICY_PROFILED = 4, EK_POLICY_STATIC = 5
  integer(c_int), parameter, public :: EK_MEASURE_AUTO = 0, EK_MEASURE_WALL = 1, EK_MEASURE_WORK = 2

  ! struct ek_partition_options
  type, bind(C), public :: ek_partition_options
    integer(c_int) :: policy = EK_POLICY_AUTO, measure = EK_MEASURE_AUTO, fastest = 0, weighted = 0
    real(c_double) :: threshold = 0, threshold_seconds = 0
    integer(c_int64_t) :: minimum = 0, maximum = 0, cycles = 0
  end type ek_partition_options

  ! struct ek_job_options
  type, bind(C), public :: ek_job_options
    integer(c_int) :: threads = 0, parts = 0
    real(c_double) :: slope = 0, most = 0
    type(c_ptr) :: table = c_null_ptr
    integer(c_int) :: points = 0
    type(c_funptr) :: cut = c_null_funptr
    type(c_ptr) :: context = c_null_ptr
  end type ek_job_options

  ! struct ek_hooks: the functions are bind(C), and their items are numbered from 0, as in C.
  type, bind(C), public :: ek_hooks
    type(c_ptr) :: context = c_null_ptr
    type(c_funptr) :: size = c_null_funptr, pack = c_null_funptr, unpack = c_null_funptr, finish = c_null_funptr
  end type ek_hooks

  abstract interface
    ! ek_run: computes units first + 1 .. first + count into results.
    integer(c_int) function ek_run(context, first, count, results) bind(C)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: context, results
      integer(c_int64_t), value :: first, count
    end function ek_run
  end interface
  ! ek_needs: names the items that this rank needs for first + 1 .. first + count, by ek_halo_need.
  abstract interface
    integer(c_int) function ek_needs(context, halo, first, count) bind(C)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: context, halo
      integer(c_int64_t), value :: first, count
    end function ek_needs
  end interface
  public :: ek_run, ek_needs

  interface
    integer(c_int) function c_create(comm, items, options, partition) bind(C, name='ek_f_partition_create')
      import :: c_int, c_int64_t, c_ptr, ek_partition_options
      integer(c_int), value :: comm
      integer(c_int64_t), value :: items
      type(ek_partition_options), intent(in) :: options
      type(c_ptr), intent(out) :: partition
    end function c_create
    integer(c_int) function c_partition_free(partition) bind(C, name='ek_partition_free')
      import :: c_int, c_ptr
      type(c_ptr), intent(inout) :: partition
    end function c_partition_free
    integer(c_int) function c_start(partition) bind(C, name='ek_partition_start')
      import :: c_int, c_ptr
      type(c_ptr), value :: partition
    end function c_start
    integer(c_int) function c_range(partition, first, count) bind(C, name='ek_partition_range')
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: partition
      integer(c_int64_t), intent(out) :: first, count
    end function c_range
    integer(c_int) function c_range_of(partition, rank, first, count) bind(C, name='ek_partition_range_of')
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: partition
      integer(c_int), value :: rank
      integer(c_int64_t), intent(out) :: first, count
    end function c_range_of
    integer(c_int) function c_owner(partition, item) bind(C, name='ek_partition_owner')
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: partition
      integer(c_int64_t), value :: item
    end function c_owner
    integer(c_int) function c_step(partition, changed) bind(C, name='ek_partition_step')
      import :: c_int, c_ptr
      type(c_ptr), value :: partition
      integer(c_int), intent(out) :: changed
    end function c_step
    integer(c_int) function c_stepped(partition, changed) bind(C, name='ek_partition_stepped')
      import :: c_int, c_ptr
      type(c_ptr), value :: partition
      integer(c_int), intent(out) :: changed
    end function c_stepped
    integer(c_int) function c_set(partition, last, count) bind(C, name='ek_f_partition_set')
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: partition
      integer(c_int64_t), intent(in) :: last(*)
      integer(c_int64_t), value :: count
    end function c_set
    integer(c_int) function c_move(partition) bind(C, name='ek_partition_move')
      import :: c_int, c_ptr
      type(c_ptr), value :: partition
    end function c_move
    integer(c_int) function c_costs(partition, cost, count) bind(C, name='ek_f_partition_costs')
      import :: c_int, c_double, c_int64_t, c_ptr
      type(c_ptr), value :: partition
      real(c_double), intent(in) :: cost(*)
      integer(c_int64_t), value :: count
    end function c_costs
    integer(c_int) function c_work_begin(partition) bind(C, name='ek_work_begin')
      import :: c_int, c_ptr
      type(c_ptr), value :: partition
    end function c_work_begin
    integer(c_int) function c_work_end(partition) bind(C, name='ek_work_end')
      import :: c_int, c_ptr
      type(c_ptr), value :: partition
    end function c_work_end
    integer(c_int) function c_overlap(partition, ready, context, seconds) bind(C, name='ek_partition_overlap')
      import :: c_int, c_double, c_ptr, c_funptr
      type(c_ptr), value :: partition, context
      type(c_funptr), value :: ready
      real(c_double), value :: seconds
    end function c_overlap
    integer(c_int) function c_hooks(partition, hooks) bind(C, name='ek_partition_hooks')
      import :: c_int, c_ptr, ek_hooks
      type(c_ptr), value :: partition
      type(ek_hooks), intent(in) :: hooks
    end function c_hooks
    integer(c_int) function c_array_create(partition, bytes, halo, array) bind(C, name='ek_array_create')
      import :: c_int, c_int64_t, c_size_t, c_ptr
      type(c_ptr), value :: partition
      integer(c_size_t), value :: bytes
      integer(c_int64_t), value :: halo
      type(c_ptr), intent(out) :: array
    end function c_array_create
    type(c_ptr) function c_array_data(array) bind(C, name='ek_array_data')
      import :: c_ptr
      type(c_ptr), value :: array
    end function c_array_data
    integer(c_int) function c_exchange(array, periodic) bind(C, name='ek_array_exchange')
      import :: c_int, c_ptr
      type(c_ptr), value :: array
      integer(c_int), value :: periodic
    end function c_exchange
    integer(c_int) function c_exchange_begin(array, periodic) bind(C, name='ek_array_exchange_begin')
      import :: c_int, c_ptr
      type(c_ptr), value :: array
      integer(c_int), value :: periodic
    end function c_exchange_begin
    integer(c_int) function c_exchange_end(array) bind(C, name='ek_array_exchange_end')
      import :: c_int, c_ptr
      type(c_ptr), value :: array
    end function c_exchange_end
    integer(c_int) function c_array_create_variable(partition, array) bind(C, name='ek_array_create_variable')
      import :: c_int, c_ptr
      type(c_ptr), value :: partition
      type(c_ptr), intent(out) :: array
    end function c_array_create_variable
    integer(c_int) function c_array_assign(array, length, data) bind(C, name='ek_array_assign')
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: array, data
      integer(c_int64_t), intent(in) :: length(*)
    end function c_array_assign
    type(c_ptr) function c_array_offsets(array) bind(C, name='ek_array_offsets')
      import :: c_ptr
      type(c_ptr), value :: array
    end function c_array_offsets
    integer(c_int64_t) function c_array_copies(array) bind(C, name='ek_array_copies')
      import :: c_int64_t, c_ptr
      type(c_ptr), value :: array
    end function c_array_copies
    integer(c_int) function c_halo_create(partition, needs, context, halo) bind(C, name='ek_halo_create')
      import :: c_int, c_ptr, c_funptr
      type(c_ptr), value :: partition, context
      type(c_funptr), value :: needs
      type(c_ptr), intent(out) :: halo
    end function c_halo_create
    integer(c_int) function c_halo_need(halo, items, count) bind(C, name='ek_halo_need')
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: halo
      integer(c_int64_t), intent(in) :: items(*)
      integer(c_int64_t), value :: count
    end function c_halo_need
    integer(c_int) function c_halo_renew(halo) bind(C, name='ek_halo_renew')
      import :: c_int, c_ptr
      type(c_ptr), value :: halo
    end function c_halo_renew
    integer(c_int64_t) function c_halo_copies(halo, items) bind(C, name='ek_halo_copies')
      import :: c_int64_t, c_ptr
      type(c_ptr), value :: halo
      type(c_ptr), intent(out) :: items
    end function c_halo_copies
    integer(c_int64_t) function c_halo_index(halo, item) bind(C, name='ek_halo_index')
      import :: c_int64_t, c_ptr
      type(c_ptr), value :: halo
      integer(c_int64_t), value :: item
    end function c_halo_index
    integer(c_int) function c_halo_exchange_begin(halo, array) bind(C, name='ek_halo_exchange_begin')
      import :: c_int, c_ptr
      type(c_ptr), value :: halo, array
    end function c_halo_exchange_begin
    integer(c_int) function c_halo_exchange_end(halo) bind(C, name='ek_halo_exchange_end')
      import :: c_int, c_ptr
      type(c_ptr), value :: halo
    end function c_halo_exchange_end
    integer(c_int) function c_halo_exchange_hooks(halo, hooks) bind(C, name='ek_halo_exchange_hooks')
      import :: c_int, c_ptr, ek_hooks
      type(c_ptr), value :: halo
      type(ek_hooks), intent(in) :: hooks
    end function c_halo_exchange_hooks
    integer(c_int) function c_gather(array, all) bind(C, name='ek_array_gather')
      import :: c_int, c_ptr
      type(c_ptr), value :: array, all
    end function c_gather
    integer(c_int) function c_job_create(comm, options, job) bind(C, name='ek_f_job_create')
      import :: c_int, c_ptr, ek_job_options
      integer(c_int), value :: comm
      type(ek_job_options), intent(in) :: options
      type(c_ptr), intent(out) :: job
    end function c_job_create
    integer(c_int) function c_job_run(job, work, run, context, results, bytes) bind(C, name='ek_job_run')
      import :: c_int, c_int64_t, c_size_t, c_ptr, c_funptr
      type(c_ptr), value :: job, context, results
      integer(c_int64_t), value :: work
      type(c_funptr), value :: run
      integer(c_size_t), value :: bytes
    end function c_job_run
    integer(c_int) function c_job_free(job) bind(C, name='ek_job_free')
      import :: c_int, c_ptr
      type(c_ptr), intent(inout) :: job
    end function c_job_free
    subroutine c_error_text(text, length) bind(C, name='ek_f_error_text')
      import :: c_char, c_int
      character(kind=c_char), intent(out) :: text(*)
      integer(c_int), value :: length
    end subroutine c_error_text
    subroutine c_reason(partition, text, length) bind(C, name='ek_f_partition_reason')
      import :: c_char, c_int, c_ptr
      type(c_ptr), value :: partition
      character(kind=c_char), intent(out) :: text(*)
      integer(c_int), value :: length
    end subroutine c_reason
    subroutine c_job_report(job, text, length) bind(C, name='ek_f_job_report')
      import :: c_char, c_int, c_ptr
      type(c_ptr), value :: job
      character(kind=c_char), intent(out) :: text(*)
      integer(c_int), value :: length
    end subroutine c_job_report
  end interface

  ! Points x at this rank's items and the copies around them: x(first - halo : last +
  ! halo), or x(:, first - halo : last + halo) for items of size(x, 1) numbers; after an
  ! exchange with an ek_halo, x(first : last + copies). Until the next step that changes
  ! the ranges, or the next exchange with another halo.
  interface ek_array_pointer
    module procedure real64_numbers, real64_columns, real32_numbers, real32_columns
    module procedure int64_numbers, int64_columns, int32_numbers, int32_columns
  end interface ek_array_pointer

  public :: ek_partition_create, ek_partition_free, ek_partition_start, ek_partition_range, ek_partition_range_of, &
    ek_partition_owner, ek_partition_step, ek_partition_stepped, ek_partition_set, ek_partition_costs, &
    ek_partition_reason, ek_partition_add, ek_partition_overlap, ek_work_begin, ek_work_end, &
    ek_array_create, ek_array_pointer, ek_array_exchange, &
    ek_array_exchange_begin, ek_array_exchange_end, ek_array_gather, ek_array_create_variable, ek_array_assign, &
    ek_array_item, ek_halo_create, ek_halo_need, ek_halo_renew, ek_halo_copies, ek_halo_index, ek_halo_exchange, &
    ek_halo_exchange_begin, ek_halo_exchange_end, ek_halo_exchange_hooks, ek_job_create, ek_job_run, ek_job_report, ek_job_free, &
    ek_error_text

contains

  ! The words for the last call that did not return EK_OK.
  function ek_error_text() result(text)
    character(len=384) :: text

    call c_error_text(text, len(text))
  end function ek_error_text

  subroutine give(result, ierror)
    integer(c_int), intent(in) :: result
    integer, intent(out), optional :: ierror

    if (present(ierror)) then
      ierror = result
    else if (result /= EK_OK) then
      write (error_unit, '(a, a)') 'evenkeel: ', trim(ek_error_text())
      error stop
    end if
  end subroutine give

  ! ---- partitions

  subroutine ek_partition_create(comm, items, partition, ierror, options)
    integer, intent(in) :: comm
    integer(int64), intent(in) :: items
    type(ek_partition), intent(out) :: partition
    integer, intent(out), optional :: ierror
    type(ek_partition_options), intent(in), optional :: options

    if (present(options)) then
      call give(c_create(comm, items, options, partition%c), ierror)
    else
      call give(c_create(comm, items, ek_partition_options(), partition%c), ierror)
    end if
  end subroutine ek_partition_create

  subroutine ek_partition_free(partition, ierror)
    type(ek_partition), intent(inout) :: partition
    integer, intent(out), optional :: ierror

    call give(c_partition_free(partition%c), ierror)
  end subroutine ek_partition_free

  subroutine ek_partition_start(partition, ierror)
    type(ek_partition), intent(in) :: partition
    integer, intent(out), optional :: ierror

    call give(c_start(partition%c), ierror)
  end subroutine ek_partition_start

  ! This rank's items: first to last, none if last is below first.
  subroutine ek_partition_range(partition, first, last)
    type(ek_partition), intent(in) :: partition
    integer(int64), intent(out) :: first, last

    call range_of(partition%c, first, last)
  end subroutine ek_partition_range

  subroutine range_of(partition, first, last)
    type(c_ptr), intent(in) :: partition
    integer(int64), intent(out) :: first, last
    integer(c_int64_t) :: count

    if (c_range(partition, first, count) /= EK_OK) count = 0
    last = first + count
    first = first + 1
  end subroutine range_of

  subroutine ek_partition_range_of(partition, rank, first, last, ierror)
    type(ek_partition), intent(in) :: partition
    integer, intent(in) :: rank
    integer(int64), intent(out) :: first, last
    integer, intent(out), optional :: ierror
    integer(c_int64_t) :: count

    first = 0
    count = 0
    call give(c_range_of(partition%c, rank, first, count), ierror)
    last = first + count
    first = first + 1
  end subroutine ek_partition_range_of

  ! The rank that has an item; -1 if there is no such item.
  integer function ek_partition_owner(partition, item) result(rank)
    type(ek_partition), intent(in) :: partition
    integer(int64), intent(in) :: item

    rank = c_owner(partition%c, item - 1)
  end function ek_partition_owner

  ! Ends a cycle, and moves what lives on the partition if other ranges are better.
  subroutine ek_partition_step(partition, ierror, changed)
    type(ek_partition), intent(in) :: partition
    integer, intent(out), optional :: ierror
    logical, intent(out), optional :: changed
    integer(c_int) :: others

    call moved(partition, c_step(partition%c, others), others, ierror, changed)
  end subroutine ek_partition_step

  ! The same after a collective call of the program's own that ended the cycle.
  subroutine ek_partition_stepped(partition, ierror, changed)
    type(ek_partition), intent(in) :: partition
    integer, intent(out), optional :: ierror
    logical, intent(out), optional :: changed
    integer(c_int) :: others

    call moved(partition, c_stepped(partition%c, others), others, ierror, changed)
  end subroutine ek_partition_stepped

  subroutine moved(partition, stepped, others, ierror, changed)
    type(ek_partition), intent(in) :: partition
    integer(c_int), intent(in) :: stepped, others
    integer, intent(out), optional :: ierror
    logical, intent(out), optional :: changed
    integer(c_int) :: result

    result = stepped
    if (result == EK_OK .and. others /= 0) result = c_move(partition%c)
    if (present(changed)) changed = result == EK_OK .and. others /= 0
    call give(result, ierror)
  end subroutine moved

  ! Rank r gets the items after last(r - 1), or the first one, up to last(r): ranks numbered from 1.
  subroutine ek_partition_set(partition, last, ierror)
    type(ek_partition), intent(in) :: partition
    integer(int64), intent(in) :: last(:)
    integer, intent(out), optional :: ierror
    integer(c_int) :: result

    result = c_set(partition%c, last, size(last, kind=c_int64_t))
    if (result == EK_OK) result = c_move(partition%c)
    call give(result, ierror)
  end subroutine ek_partition_set

  ! What each of this rank's items cost in the cycle.
  subroutine ek_partition_costs(partition, cost, ierror)
    type(ek_partition), intent(in) :: partition
    real(real64), intent(in) :: cost(:)
    integer, intent(out), optional :: ierror

    call give(c_costs(partition%c, cost, size(cost, kind=c_int64_t)), ierror)
  end subroutine ek_partition_costs

  function ek_partition_reason(partition) result(text)
    type(ek_partition), intent(in) :: partition
    character(len=256) :: text

    call c_reason(partition%c, text, len(text))
  end function ek_partition_reason

  ! Items that the program packs and unpacks itself.
  subroutine ek_partition_add(partition, hooks, ierror)
    type(ek_partition), intent(in) :: partition
    type(ek_hooks), intent(in) :: hooks
    integer, intent(out), optional :: ierror

    call give(c_hooks(partition%c, hooks), ierror)
  end subroutine ek_partition_add

  ! Early ranks get ready for the range that they expect: ready(context, first, count) is bind(C) and
  ! counts items from 0; c_null_funptr: only memory for the arrays is got.
  subroutine ek_partition_overlap(partition, ready, seconds, ierror, context)
    type(ek_partition), intent(in) :: partition
    type(c_funptr), intent(in) :: ready
    real(real64), intent(in) :: seconds
    integer, intent(out), optional :: ierror
    type(c_ptr), intent(in), optional :: context
    type(c_ptr) :: given

    given = c_null_ptr
    if (present(context)) given = context
    call give(c_overlap(partition%c, ready, given, seconds), ierror)
  end subroutine ek_partition_overlap

  subroutine ek_work_begin(partition)
    type(ek_partition), intent(in) :: partition

    call give(c_work_begin(partition%c))
  end subroutine ek_work_begin

  subroutine ek_work_end(partition)
    type(ek_partition), intent(in) :: partition

    call give(c_work_end(partition%c))
  end subroutine ek_work_end

  ! ---- arrays

  subroutine ek_array_create(partition, array, bytes, ierror, halo)
    type(ek_partition), intent(in) :: partition
    type(ek_array), intent(out) :: array
    integer, intent(in) :: bytes
    integer, intent(out), optional :: ierror
    integer(int64), intent(in), optional :: halo

    array%partition = partition%c
    if (present(halo)) array%halo = halo
    call give(c_array_create(partition%c, int(bytes, c_size_t), array%halo, array%c), ierror)
  end subroutine ek_array_create

  subroutine ek_array_exchange(array, ierror, periodic)
    type(ek_array), intent(in) :: array
    integer, intent(out), optional :: ierror
    logical, intent(in), optional :: periodic

    call give(c_exchange(array%c, number(periodic)), ierror)
  end subroutine ek_array_exchange

  subroutine ek_array_exchange_begin(array, ierror, periodic)
    type(ek_array), intent(in) :: array
    integer, intent(out), optional :: ierror
    logical, intent(in), optional :: periodic

    call give(c_exchange_begin(array%c, number(periodic)), ierror)
  end subroutine ek_array_exchange_begin

  subroutine ek_array_exchange_end(array, ierror)
    type(ek_array), intent(in) :: array
    integer, intent(out), optional :: ierror

    call give(c_exchange_end(array%c), ierror)
  end subroutine ek_array_exchange_end

  integer(c_int) function number(flag)
    logical, intent(in), optional :: flag

    number = 0
    if (present(flag)) number = merge(1, 0, flag)
  end function number

  ! All items on all ranks; `all` is c_loc of where they go.
  subroutine ek_array_gather(array, all, ierror)
    type(ek_array), intent(in) :: array
    type(c_ptr), intent(in) :: all
    integer, intent(out), optional :: ierror

    call give(c_gather(array%c, all), ierror)
  end subroutine ek_array_gather

  ! Where the first copy is, and the numbers of the first and last item with copies.
  type(c_ptr) function with_halo(array, bytes, first, last) result(begin)
    type(ek_array), intent(in) :: array
    integer, intent(in) :: bytes
    integer(int64), intent(out) :: first, last

    call range_of(array%partition, first, last)
    begin = transfer(transfer(c_array_data(array%c), 0_c_intptr_t) - array%halo * bytes, c_null_ptr)
    first = first - array%halo
    last = last + array%halo + c_array_copies(array%c)
  end function with_halo

  ! An array of items of any length.
  subroutine ek_array_create_variable(partition, array, ierror)
    type(ek_partition), intent(in) :: partition
    type(ek_array), intent(out) :: array
    integer, intent(out), optional :: ierror

    array%partition = partition%c
    call give(c_array_create_variable(partition%c, array%c), ierror)
  end subroutine ek_array_create_variable

  ! This rank's items: their lengths in bytes, and c_loc of all of them, one after the other.
  subroutine ek_array_assign(array, length, data, ierror)
    type(ek_array), intent(in) :: array
    integer(int64), intent(in) :: length(:)
    type(c_ptr), intent(in) :: data
    integer, intent(out), optional :: ierror

    call give(c_array_assign(array%c, length, data), ierror)
  end subroutine ek_array_assign

  ! Where an item of any length is, by its place: first to last, and copies behind these (see
  ! ek_halo_index). Until the next step that changes the ranges, assignment or exchange.
  subroutine ek_array_item(array, place, at, bytes)
    type(ek_array), intent(in) :: array
    integer(int64), intent(in) :: place
    type(c_ptr), intent(out) :: at
    integer(int64), intent(out) :: bytes
    integer(c_int64_t), pointer :: offset(:)
    integer(int64) :: first, last

    call range_of(array%partition, first, last)
    call c_f_pointer(c_array_offsets(array%c), offset, [last - first + 2 + c_array_copies(array%c)])
    at = transfer(transfer(c_array_data(array%c), 0_c_intptr_t) + offset(place - first + 1), c_null_ptr)
    bytes = offset(place - first + 2) - offset(place - first + 1)
  end subroutine ek_array_item

  ! ---- halos: copies of any items of others

  subroutine ek_halo_create(partition, halo, needs, ierror, context)
    type(ek_partition), intent(in) :: partition
    type(ek_halo), intent(out) :: halo
    procedure(ek_needs) :: needs
    integer, intent(out), optional :: ierror
    type(c_ptr), intent(in), optional :: context
    type(c_ptr) :: given

    given = c_null_ptr
    if (present(context)) given = context
    halo%partition = partition%c
    call give(c_halo_create(partition%c, c_funloc(needs), given, halo%c), ierror)
  end subroutine ek_halo_create

  ! Names items: from within `needs`, with the halo that it was given.
  subroutine ek_halo_need(halo, items, ierror)
    type(c_ptr), intent(in) :: halo
    integer(int64), intent(in) :: items(:)
    integer, intent(out), optional :: ierror

    call give(c_halo_need(halo, items - 1, size(items, kind=int64)), ierror)
  end subroutine ek_halo_need

  subroutine ek_halo_renew(halo, ierror)
    type(ek_halo), intent(in) :: halo
    integer, intent(out), optional :: ierror

    call give(c_halo_renew(halo%c), ierror)
  end subroutine ek_halo_renew

  ! The items that copies are made of, rising.
  function ek_halo_copies(halo) result(items)
    type(ek_halo), intent(in) :: halo
    integer(int64), allocatable :: items(:)
    integer(c_int64_t), pointer :: list(:)
    type(c_ptr) :: at
    integer(int64) :: copies

    copies = c_halo_copies(halo%c, at)
    allocate (items(copies))
    if (copies == 0) return
    call c_f_pointer(at, list, [copies])
    items = list + 1
  end function ek_halo_copies

  ! Where an item is in arrays that are exchanged: itself if it is this rank's, a place behind
  ! last if it is a copy, 0 if it is not here.
  integer(int64) function ek_halo_index(halo, item) result(place)
    type(ek_halo), intent(in) :: halo
    integer(int64), intent(in) :: item
    integer(int64) :: first, last

    call range_of(halo%partition, first, last)
    place = c_halo_index(halo%c, item - 1)
    place = merge(0_int64, first + place, place < 0)
  end function ek_halo_index

  subroutine ek_halo_exchange(halo, array, ierror)
    type(ek_halo), intent(in) :: halo
    type(ek_array), intent(in) :: array
    integer, intent(out), optional :: ierror
    integer(c_int) :: result

    result = c_halo_exchange_begin(halo%c, array%c)
    if (result == EK_OK) result = c_halo_exchange_end(halo%c)
    call give(result, ierror)
  end subroutine ek_halo_exchange

  subroutine ek_halo_exchange_begin(halo, array, ierror)
    type(ek_halo), intent(in) :: halo
    type(ek_array), intent(in) :: array
    integer, intent(out), optional :: ierror

    call give(c_halo_exchange_begin(halo%c, array%c), ierror)
  end subroutine ek_halo_exchange_begin

  subroutine ek_halo_exchange_end(halo, ierror)
    type(ek_halo), intent(in) :: halo
    integer, intent(out), optional :: ierror

    call give(c_halo_exchange_end(halo%c), ierror)
  end subroutine ek_halo_exchange_end

  ! Items that the program packs and unpacks itself.
  subroutine ek_halo_exchange_hooks(halo, hooks, ierror)
    type(ek_halo), intent(in) :: halo
    type(ek_hooks), intent(in) :: hooks
    integer, intent(out), optional :: ierror

    call give(c_halo_exchange_hooks(halo%c, hooks), ierror)
  end subroutine ek_halo_exchange_hooks

#define TYPE real(real64)
#define BYTES 8
#define NUMBERS real64_numbers
#define COLUMNS real64_columns
#include "pointers.inc"
#define TYPE real(real32)
#define BYTES 4
#define NUMBERS real32_numbers
#define COLUMNS real32_columns
#include "pointers.inc"
#define TYPE integer(int64)
#define BYTES 8
#define NUMBERS int64_numbers
#define COLUMNS int64_columns
#include "pointers.inc"
#define TYPE integer(int32)
#define BYTES 4
#define NUMBERS int32_numbers
#define COLUMNS int32_columns
#include "pointers.inc"

  ! ---- jobs

  subroutine ek_job_create(comm, job, ierror, options)
    integer, intent(in) :: comm
    type(ek_job), intent(out) :: job
    integer, intent(out), optional :: ierror
    type(ek_job_options), intent(in), optional :: options

    if (present(options)) then
      call give(c_job_create(comm, options, job%c), ierror)
    else
      call give(c_job_create(comm, ek_job_options(), job%c), ierror)
    end if
  end subroutine ek_job_create

  ! results is c_loc of room for the results of all units, `bytes` each.
  subroutine ek_job_run(job, work, run, results, bytes, ierror, context)
    type(ek_job), intent(in) :: job
    integer(int64), intent(in) :: work
    procedure(ek_run) :: run
    type(c_ptr), intent(in) :: results
    integer, intent(in) :: bytes
    integer, intent(out), optional :: ierror
    type(c_ptr), intent(in), optional :: context
    type(c_ptr) :: given

    given = c_null_ptr
    if (present(context)) given = context
    call give(c_job_run(job%c, work, c_funloc(run), given, results, int(bytes, c_size_t)), ierror)
  end subroutine ek_job_run

  function ek_job_report(job) result(text)
    type(ek_job), intent(in) :: job
    character(len=768) :: text

    call c_job_report(job%c, text, len(text))
  end function ek_job_report

  subroutine ek_job_free(job, ierror)
    type(ek_job), intent(inout) :: job
    integer, intent(out), optional :: ierror

    call give(c_job_free(job%c), ierror)
  end subroutine ek_job_free

end module evenkeel
