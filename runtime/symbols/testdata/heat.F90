! heat.F90 - call sites in Fortran: a program, a module's procedures, internal
! procedures, and an external one.
module heat
   implicit none
   integer :: zero = 0
contains
   subroutine step(n)
      integer, intent(in) :: n
      integer, external :: probe_fortran
      zero = zero + probe_fortran(__FILE__, __LINE__, 'heat::step')
      call inner(n)
   contains
      subroutine inner(m)
         integer, intent(in) :: m
         zero = zero + m*probe_fortran(__FILE__, __LINE__, 'inner')
      end subroutine inner
   end subroutine step
end module heat

subroutine outside()
   use heat, only: zero
   implicit none
   integer, external :: probe_fortran
   zero = zero + probe_fortran(__FILE__, __LINE__, 'outside')
end subroutine outside

program stencil
   use heat
   implicit none
   integer, external :: probe_fortran
   call step(1)
   call outside()
   zero = zero + probe_fortran(__FILE__, __LINE__, 'stencil')
end program stencil
