//go:build (linux || darwin) && !static

#include "textflag.h"

// sgemmCall(args *sgemmArgs) is called with the C convention of System V, on the
// system stack, and calls args.fn with the arguments in their registers: a call
// that takes whole numbers and floats needs both kinds, which a plain call of a
// function of pointers does not set.
//
// The frame holds the arguments beyond the sixth whole number (0 to 39) and the
// pointer to args (48). With the saved frame pointer it keeps SP at 16 bytes.
TEXT sgemmCall<>(SB), NOSPLIT, $64-0
	MOVQ DI, 48(SP)
	MOVQ DI, R11
	MOVQ 56(R11), AX  // lda
	MOVQ AX, 0(SP)
	MOVQ 64(R11), AX  // b
	MOVQ AX, 8(SP)
	MOVQ 72(R11), AX  // ldb
	MOVQ AX, 16(SP)
	MOVQ 80(R11), AX  // c
	MOVQ AX, 24(SP)
	MOVQ 88(R11), AX  // ldc
	MOVQ AX, 32(SP)
	MOVSS 96(R11), X0 // alpha
	MOVSS 100(R11), X1 // beta
	MOVQ 8(R11), DI   // transA
	MOVQ 16(R11), SI  // transB
	MOVQ 24(R11), DX  // m
	MOVQ 32(R11), CX  // n
	MOVQ 40(R11), R8  // k
	MOVQ 48(R11), R9  // a
	MOVQ 0(R11), R10
	CALL R10
	MOVQ 48(SP), R11
	MOVQ AX, 104(R11) // status
	RET

GLOBL ·sgemmCallAddr(SB), NOPTR|RODATA, $8
DATA ·sgemmCallAddr(SB)/8, $sgemmCall<>(SB)

// chainCall(chain *callChain) is called as sgemmCall is and makes the calls of the
// chain, 40 bytes each, until one returns a status other than 0. The frame holds
// the chain (0), the next call (8) and the number of calls left (16).
TEXT chainCall<>(SB), NOSPLIT, $32-0
	MOVQ DI, 0(SP)
	MOVQ DI, 8(SP)
	MOVQ 240(DI), AX // n
	MOVQ AX, 16(SP)

next:
	MOVQ 8(SP), R11
	MOVQ 0(R11), R10
	MOVQ 8(R11), DI
	MOVQ 16(R11), SI
	MOVQ 24(R11), DX
	MOVQ 32(R11), CX
	ADDQ $40, R11
	MOVQ R11, 8(SP)
	CALL R10
	MOVQ 0(SP), R11
	MOVQ AX, 248(R11) // status
	TESTL AX, AX
	JNE  done
	DECQ 16(SP)
	JNE  next

done:
	RET

GLOBL ·chainCallAddr(SB), NOPTR|RODATA, $8
DATA ·chainCallAddr(SB)/8, $chainCall<>(SB)
