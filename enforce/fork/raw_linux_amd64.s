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

// The kernel calls handler with the C calling convention, on the signal stack: signal in
// DI, siginfo_t in SI (sigaction(2)). It may change any register. It calls Go as Go
// does (ABIInternal).
TEXT handler<>(SB),NOSPLIT|NOFRAME,$0
	SUBQ	$24, SP // where passOn may keep its arguments
	MOVQ	DI, AX
	MOVQ	SI, BX
	XORPS	X15, X15
	MOVQ	·passOnPC(SB), CX
	CALL	CX
	ADDQ	$24, SP
	RET

TEXT signalReturn<>(SB),NOSPLIT|NOFRAME,$0
	MOVL	$15, AX // SYS_rt_sigreturn
	SYSCALL
	INT	$3

DATA ·handlerPC+0(SB)/8, $handler<>(SB)
GLOBL ·handlerPC(SB), NOPTR, $8
DATA ·returnPC+0(SB)/8, $signalReturn<>(SB)
GLOBL ·returnPC(SB), NOPTR, $8
