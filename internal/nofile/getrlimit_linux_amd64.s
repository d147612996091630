#include "textflag.h"

// func getrlimit(lim *[2]uint64) int64
TEXT ·getrlimit(SB),NOSPLIT,$0-16
	MOVQ $97, AX // SYS_getrlimit
	MOVQ $7, DI // RLIMIT_NOFILE
	MOVQ lim+0(FP), SI
	SYSCALL
	MOVQ AX, ret+8(FP)
	RET
