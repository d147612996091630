#include "textflag.h"

// func getrlimit(lim *[2]uint64) int64
TEXT ·getrlimit(SB),NOSPLIT,$0-16
	MOVD $163, R8 // SYS_getrlimit
	MOVD $7, R0 // RLIMIT_NOFILE
	MOVD lim+0(FP), R1
	SVC
	MOVD R0, ret+8(FP)
	RET
