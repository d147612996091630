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
	MOVD	$98, R8 // SYS_futex
	MOVD	$·resumed(SB), R0
	MOVD	$128, R1 // FUTEX_WAIT_PRIVATE
	MOVD	$0, R2
	MOVD	$longest<>(SB), R3
	SVC
	MOVD	$1, R0
	MOVD	$·resumed(SB), R1
	MOVW	R0, (R1)
	RET

TEXT signalReturn<>(SB),NOSPLIT|NOFRAME,$0
	MOVD	$139, R8 // SYS_rt_sigreturn
	SVC
	BRK

// longest is 10 ms, as struct timespec.
DATA longest<>+8(SB)/8, $10000000
GLOBL longest<>(SB), NOPTR|RODATA, $16

DATA ·handlerPC+0(SB)/8, $handler<>(SB)
GLOBL ·handlerPC(SB), NOPTR, $8
DATA ·returnPC+0(SB)/8, $signalReturn<>(SB)
GLOBL ·returnPC(SB), NOPTR, $8
