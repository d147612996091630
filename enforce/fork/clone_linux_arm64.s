#include "textflag.h"

// func rawVfork(flags uintptr) (r int)
//
// clone(2) with CLONE_VM and CLONE_VFORK: parent and child run one after the
// other on the same stack. The return address is in the link register, which
// the system call preserves.
TEXT ·rawVfork(SB),NOSPLIT|NOFRAME,$0-16
	MOVD	flags+0(FP), R0
	MOVD	ZR, R1
	MOVD	ZR, R2
	MOVD	ZR, R3
	MOVD	ZR, R4
	MOVD	$220, R8 // SYS_clone
	SVC
	MOVD	R0, r+8(FP)
	RET

// func rawKeeper(args *cloneArgs, j *image) (r int)
//
// clone3(2) with a stack for the child, which starts with nothing on it.
TEXT ·rawKeeper(SB),NOSPLIT|NOFRAME,$0-24
	MOVD	args+0(FP), R0
	MOVD	$88, R1 // CLONE_ARGS_SIZE_VER2
	MOVD	j+8(FP), R9
	MOVD	$435, R8 // SYS_clone3
	SVC
	CBZ	R0, child
	MOVD	R0, r+16(FP)
	RET
child:
	SUB	$32, RSP
	MOVD	R9, 8(RSP)
	CALL	·runKeeper(SB)
	BRK
