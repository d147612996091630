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
	MOVD	$·runKeeper(SB), R10 // by its address: the linker counts the stack from there
	CALL	(R10)
	BRK

// func call(nr, a1, a2, a3, a4, a5, a6 uintptr) (r int)
TEXT ·call(SB),NOSPLIT|NOFRAME,$0-64
	MOVD	nr+0(FP), R8
	MOVD	a1+8(FP), R0
	MOVD	a2+16(FP), R1
	MOVD	a3+24(FP), R2
	MOVD	a4+32(FP), R3
	MOVD	a5+40(FP), R4
	MOVD	a6+48(FP), R5
	SVC
	MOVD	R0, r+56(FP)
	RET
