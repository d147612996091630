#include "textflag.h"

// The kernel calls it with the C calling convention, on the signal stack:
// signal in DI, siginfo_t in SI (sigaction(2)). It may change any register.
TEXT ·handleSignal(SB),NOSPLIT|NOFRAME,$0
	CMPL	DI, $2 // SIGINT
	JEQ	keyboard
	CMPL	DI, $3 // SIGQUIT
	JNE	send
keyboard:
	MOVL	·keyboardCode(SB), AX
	CMPL	8(SI), AX // si_code
	JGT	done
send:
	MOVL	DI, ·forwarded(SB)
	SUBQ	$24, SP
	MOVL	$6, 0(SP) // message{msgSignal, signal}
	MOVL	DI, 4(SP)
	MOVL	·forwardTo(SB), DI
	MOVQ	SP, SI
	MOVL	$8, DX
	MOVL	$0x4040, R10 // MSG_NOSIGNAL | MSG_DONTWAIT
	XORL	R8, R8
	XORL	R9, R9
	MOVL	$44, AX // SYS_sendto
	SYSCALL
	ADDQ	$24, SP
	MOVL	·keeperPid(SB), DI
	TESTL	DI, DI
	JEQ	done
	MOVL	$18, SI // SIGCONT
	MOVL	$62, AX // SYS_kill
	SYSCALL
done:
	RET

TEXT ·signalReturn(SB),NOSPLIT|NOFRAME,$0
	MOVL	$15, AX // SYS_rt_sigreturn
	SYSCALL
	INT	$3

DATA ·handleSignalPC+0(SB)/8, $·handleSignal(SB)
GLOBL ·handleSignalPC(SB), NOPTR, $8
DATA ·signalReturnPC+0(SB)/8, $·signalReturn(SB)
GLOBL ·signalReturnPC(SB), NOPTR, $8
