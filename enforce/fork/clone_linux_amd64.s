#include "textflag.h"

// func rawVfork(flags uintptr) (r int)
//
// clone(2) with CLONE_VM and CLONE_VFORK: parent and child run one after the
// other on the same stack. The child's calls overwrite what lies below its
// caller's frame, the return address of this call included, so that address
// is kept in a register over the system call.
TEXT ·rawVfork(SB),NOSPLIT|NOFRAME,$0-16
	MOVQ	flags+0(FP), DI
	XORL	SI, SI
	XORL	DX, DX
	XORL	R10, R10
	XORL	R8, R8
	XORL	R9, R9
	MOVQ	$56, AX // SYS_clone
	POPQ	R12
	SYSCALL
	PUSHQ	R12
	MOVQ	AX, r+8(FP)
	RET

// func rawKeeper(args *cloneArgs, j *image) (r int)
//
// clone3(2) with a stack for the child, which starts with nothing on it.
TEXT ·rawKeeper(SB),NOSPLIT|NOFRAME,$0-24
	MOVQ	args+0(FP), DI
	MOVQ	$88, SI // CLONE_ARGS_SIZE_VER2
	MOVQ	j+8(FP), R12
	MOVQ	$435, AX // SYS_clone3
	SYSCALL
	TESTQ	AX, AX
	JEQ	child
	MOVQ	AX, r+16(FP)
	RET
child:
	PUSHQ	R12
	PUSHQ	R12
	CALL	·runKeeper(SB)
	INT	$3
