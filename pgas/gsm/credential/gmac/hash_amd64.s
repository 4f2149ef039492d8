// hash_amd64.s - GHASH of chunks of 16 blocks by AVX-512 and VPCLMULQDQ.
//
// The blocks of a chunk are multiplied by the sixteenth to the first power of the hash
// key, four by an instruction, and the products are added up before they are reduced,
// as in Intel's "Carry-Less Multiplication and Its Usage for Computing the GCM Mode".
// The reduction in two halves is that of Linux's aes-gcm-vaes-avx512.S.

#include "textflag.h"

// The order of a block's bytes is turned round.
DATA reverse<>+0(SB)/8, $0x08090a0b0c0d0e0f
DATA reverse<>+8(SB)/8, $0x0001020304050607
GLOBL reverse<>(SB), RODATA|NOPTR, $16

// 1/x.
DATA polynomial<>+0(SB)/8, $0x0000000000000001
DATA polynomial<>+8(SB)/8, $0xc200000000000000
GLOBL polynomial<>(SB), RODATA|NOPTR, $16

// Four blocks times four powers, added to the low, middle and high parts of the
// products: Z5, Z6 and Z7.
#define MULTIPLY(blocks, powers) \
	VPCLMULQDQ $0x00, blocks, powers, Z8; \
	VPXORQ     Z8, Z5, Z5; \
	VPCLMULQDQ $0x01, blocks, powers, Z8; \
	VPCLMULQDQ $0x10, blocks, powers, Z9; \
	VPTERNLOGQ $0x96, Z8, Z9, Z6; \
	VPCLMULQDQ $0x11, blocks, powers, Z8; \
	VPXORQ     Z8, Z7, Z7

// func hash(sum *[16]byte, powers *[256]byte, data *byte, chunks int)
TEXT ·hash(SB), NOSPLIT, $0-32
	MOVQ sum+0(FP), DI
	MOVQ powers+8(FP), SI
	MOVQ data+16(FP), DX
	MOVQ chunks+24(FP), CX
	VBROADCASTI32X4 reverse<>(SB), Z10
	VBROADCASTI32X4 polynomial<>(SB), Z11
	VMOVDQU64 0(SI), Z12
	VMOVDQU64 64(SI), Z13
	VMOVDQU64 128(SI), Z14
	VMOVDQU64 192(SI), Z15
	VMOVDQU (DI), X0 // and zeros above
	VPSHUFB X10, X0, X0

next:
	VMOVDQU64 0(DX), Z1
	VMOVDQU64 64(DX), Z2
	VMOVDQU64 128(DX), Z3
	VMOVDQU64 192(DX), Z4
	VPSHUFB Z10, Z1, Z1
	VPSHUFB Z10, Z2, Z2
	VPSHUFB Z10, Z3, Z3
	VPSHUFB Z10, Z4, Z4
	VPXORQ Z5, Z5, Z5
	VPXORQ Z6, Z6, Z6
	VPXORQ Z7, Z7, Z7
	MULTIPLY(Z2, Z13)
	MULTIPLY(Z3, Z14)
	MULTIPLY(Z4, Z15)
	VPXORQ Z0, Z1, Z1 // the sum so far comes last: it is what takes longest to know
	MULTIPLY(Z1, Z12)

	// The low part is folded into the middle one, and that into the high one.
	VPCLMULQDQ $0x01, Z5, Z11, Z8
	VPSHUFD $0x4e, Z5, Z5
	VPTERNLOGQ $0x96, Z8, Z5, Z6
	VPCLMULQDQ $0x01, Z6, Z11, Z8
	VPSHUFD $0x4e, Z6, Z6
	VPTERNLOGQ $0x96, Z8, Z6, Z7

	VEXTRACTI64X4 $1, Z7, Y0
	VPXOR Y7, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPXOR X1, X0, X0
	ADDQ $256, DX
	DECQ CX
	JNZ next

	VPSHUFB X10, X0, X0
	VMOVDQU X0, (DI)
	VZEROUPPER
	RET
