#include "textflag.h"

TEXT ·call(SB),NOSPLIT,$0-48
	MOVQ	nr+0(FP), AX
	MOVQ	a+8(FP), DI
	MOVQ	b+16(FP), SI
	MOVQ	c+24(FP), DX
	MOVQ	d+32(FP), R10
	SYSCALL
	MOVQ	AX, ret+40(FP)
	RET

// The kernel calls handler on the signal stack (sigaction(2)).
TEXT handler<>(SB),NOSPLIT|NOFRAME,$0
	MOVL	$157, AX // SYS_prctl
	MOVL	$29, DI // PR_SET_TIMERSLACK
	MOVL	$200000, SI
	SYSCALL
	RET

TEXT signalReturn<>(SB),NOSPLIT|NOFRAME,$0
	MOVL	$15, AX // SYS_rt_sigreturn
	SYSCALL
	INT	$3

DATA ·handlerPC+0(SB)/8, $handler<>(SB)
GLOBL ·handlerPC(SB), NOPTR, $8
DATA ·returnPC+0(SB)/8, $signalReturn<>(SB)
GLOBL ·returnPC(SB), NOPTR, $8
