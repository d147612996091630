#include "textflag.h"

// func rawClone(flags, top, run uintptr, j *image, r role) int
//
// The child calls Go as Go does (ABIInternal). Functions read their stack's limit from the
// goroutine, which R28 and the thread pointer (CLONE_SETTLS) point to. The lower half of
// the stack has a goroutine of zeros: no limit.
TEXT ·rawClone(SB),NOSPLIT|NOFRAME,$0-48
	MOVD	flags+0(FP), R0
	MOVD	top+8(FP), R1
	MOVD	ZR, R2
	SUB	$8192, R1, R3
	MOVD	ZR, R4
	MOVD	run+16(FP), R11
	MOVD	j+24(FP), R9
	MOVD	r+32(FP), R10
	MOVD	$220, R8 // SYS_clone
	SVC
	CBZ	R0, child
	MOVD	R0, ret+40(FP)
	RET
child:
	MOVD	R3, g
	SUB	$32, RSP // where it may keep its arguments
	MOVD	R9, R0
	MOVD	R10, R1
	CALL	(R11)
	BRK
