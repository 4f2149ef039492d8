#include "textflag.h"

// func At(up int) uintptr
//
// BP points into the frame of the function that calls At, the 0th: to a word with the
// BP of its caller, above which is the address to which it returns.
TEXT ·At(SB), NOSPLIT|NOFRAME, $0-16
	MOVQ up+0(FP), CX
	MOVQ BP, AX
up:
	SUBQ $1, CX
	JLT  there
	MOVQ (AX), AX
	JMP  up
there:
	MOVQ 8(AX), AX
	MOVQ AX, ret+8(FP)
	RET
