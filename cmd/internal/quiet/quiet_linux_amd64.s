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
	MOVL	$202, AX // SYS_futex
	LEAQ	·resumed(SB), DI
	MOVL	$128, SI // FUTEX_WAIT_PRIVATE
	MOVL	$0, DX
	LEAQ	longest<>(SB), R10
	SYSCALL
	MOVL	$1, ·resumed(SB)
	RET

TEXT signalReturn<>(SB),NOSPLIT|NOFRAME,$0
	MOVL	$15, AX // SYS_rt_sigreturn
	SYSCALL
	INT	$3

// longest is 10 ms, as struct timespec.
DATA longest<>+8(SB)/8, $10000000
GLOBL longest<>(SB), NOPTR|RODATA, $16

DATA ·handlerPC+0(SB)/8, $handler<>(SB)
GLOBL ·handlerPC(SB), NOPTR, $8
DATA ·returnPC+0(SB)/8, $signalReturn<>(SB)
GLOBL ·returnPC(SB), NOPTR, $8
