#include "textflag.h"

TEXT ·sigaction(SB),NOSPLIT,$0-16
	MOVQ	signal+0(FP), DI
	MOVQ	act+8(FP), SI
	XORL	DX, DX
	MOVL	$8, R10
	MOVL	$13, AX // SYS_rt_sigaction
	SYSCALL
	RET
