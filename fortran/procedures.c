/* procedures.c - tells libevenkeel.so where the procedures of the module evenkeel are, so
 * that what they call counts as called where the program calls them. The linker names the
 * ends of the section into which the Makefile puts them.
 */
extern const char __start_ek_fortran[] __attribute__((visibility("hidden")));
extern const char __stop_ek_fortran[] __attribute__((visibility("hidden")));
void ek_fortran_procedures(const void *begin, const void *end);

static __attribute__((constructor)) void tell(void)
{
	ek_fortran_procedures(__start_ek_fortran, __stop_ek_fortran);
}
