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
	LEAQ	·runKeeper(SB), AX // by its address: the linker counts the stack from there
	CALL	AX
	INT	$3

// func call(nr, a1, a2, a3, a4, a5, a6 uintptr) (r int)
TEXT ·call(SB),NOSPLIT|NOFRAME,$0-64
	MOVQ	nr+0(FP), AX
	MOVQ	a1+8(FP), DI
	MOVQ	a2+16(FP), SI
	MOVQ	a3+24(FP), DX
	MOVQ	a4+32(FP), R10
	MOVQ	a5+40(FP), R8
	MOVQ	a6+48(FP), R9
	SYSCALL
	MOVQ	AX, r+56(FP)
	RET
