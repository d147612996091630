#include "textflag.h"

// The kernel calls it with the C calling convention, on the signal stack:
// signal in R0, siginfo_t in R1 (sigaction(2)). It may change any register.
TEXT ·handleSignal(SB),NOSPLIT|NOFRAME,$0
	CMPW	$2, R0 // SIGINT
	BEQ	keyboard
	CMPW	$3, R0 // SIGQUIT
	BNE	send
keyboard:
	MOVW	8(R1), R2 // si_code
	MOVW	·keyboardCode(SB), R3
	CMPW	R3, R2
	BGT	done
send:
	MOVW	R0, ·forwarded(SB)
	SUB	$16, RSP
	MOVW	$6, R2 // message{msgSignal, signal}
	MOVW	R2, 0(RSP)
	MOVW	R0, 4(RSP)
	MOVW	·forwardTo(SB), R0
	MOVD	RSP, R1
	MOVD	$8, R2
	MOVD	$0x4040, R3 // MSG_NOSIGNAL | MSG_DONTWAIT
	MOVD	ZR, R4
	MOVD	ZR, R5
	MOVD	$206, R8 // SYS_sendto
	SVC
	ADD	$16, RSP
	MOVW	·keeperPid(SB), R0
	CBZW	R0, done
	MOVD	$18, R1 // SIGCONT
	MOVD	$129, R8 // SYS_kill
	SVC
done:
	RET

TEXT ·signalReturn(SB),NOSPLIT|NOFRAME,$0
	MOVD	$139, R8 // SYS_rt_sigreturn
	SVC
	BRK

DATA ·handleSignalPC+0(SB)/8, $·handleSignal(SB)
GLOBL ·handleSignalPC(SB), NOPTR, $8
DATA ·signalReturnPC+0(SB)/8, $·signalReturn(SB)
GLOBL ·signalReturnPC(SB), NOPTR, $8
