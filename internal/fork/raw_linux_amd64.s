#include "textflag.h"

// func rawClone(flags, top, run uintptr, j *image, r role) int
//
// The child calls Go as Go does (ABIInternal). Functions read their stack's limit from the
// goroutine, which R14 points to and, after a call of assembly, the thread pointer
// (CLONE_SETTLS). The lower half of the stack has a goroutine of zeros: no limit.
TEXT ·rawClone(SB),NOSPLIT|NOFRAME,$0-48
	MOVQ	flags+0(FP), DI
	MOVQ	top+8(FP), SI
	XORL	DX, DX
	XORL	R10, R10
	LEAQ	-8192(SI), R8
	MOVQ	run+16(FP), R9
	MOVQ	j+24(FP), R12
	MOVQ	r+32(FP), R13
	MOVQ	$56, AX // SYS_clone
	SYSCALL
	TESTQ	AX, AX
	JEQ	child
	MOVQ	AX, ret+40(FP)
	RET
child:
	LEAQ	-2048(R8), R14
	MOVQ	TLS, CX
	MOVQ	R14, 0(CX)(TLS*1)
	SUBQ	$32, SP // where it may keep its arguments
	MOVQ	R12, AX
	MOVQ	R13, BX
	XORPS	X15, X15
	CALL	R9
	INT	$3
