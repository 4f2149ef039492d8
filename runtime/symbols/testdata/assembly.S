/* assembly.S - a call site in assembler: a line, and a function in the symbol
 * table alone. */
	.text
	.globl from_assembly
	.type from_assembly, @function
from_assembly:
	subq $8, %rsp
	call probe_fortran_@PLT
	addq $8, %rsp
	ret
	.size from_assembly, .-from_assembly
	.section .note.GNU-stack, "", @progbits
