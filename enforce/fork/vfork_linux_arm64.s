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
