#include "textflag.h"

TEXT ·sigaction(SB),NOSPLIT,$0-16
	MOVD	signal+0(FP), R0
	MOVD	act+8(FP), R1
	MOVD	ZR, R2
	MOVD	$8, R3
	MOVD	$134, R8 // SYS_rt_sigaction
	SVC
	RET
