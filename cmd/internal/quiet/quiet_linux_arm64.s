#include "textflag.h"

TEXT ·call(SB),NOSPLIT,$0-48
	MOVD	nr+0(FP), R8
	MOVD	a+8(FP), R0
	MOVD	b+16(FP), R1
	MOVD	c+24(FP), R2
	MOVD	d+32(FP), R3
	SVC
	MOVD	R0, ret+40(FP)
	RET

// The kernel calls handler on the signal stack (sigaction(2)).
TEXT handler<>(SB),NOSPLIT|NOFRAME,$0
	MOVD	$167, R8 // SYS_prctl
	MOVD	$29, R0 // PR_SET_TIMERSLACK
	MOVD	$200000, R1
	SVC
	RET

TEXT signalReturn<>(SB),NOSPLIT|NOFRAME,$0
	MOVD	$139, R8 // SYS_rt_sigreturn
	SVC
	BRK

DATA ·handlerPC+0(SB)/8, $handler<>(SB)
GLOBL ·handlerPC(SB), NOPTR, $8
DATA ·returnPC+0(SB)/8, $signalReturn<>(SB)
GLOBL ·returnPC(SB), NOPTR, $8
