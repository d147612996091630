//go:build amd64 || arm64

#include "textflag.h"

TEXT sandbox_init_trampoline<>(SB),NOSPLIT,$0-0
	JMP	libc_sandbox_init(SB)
GLOBL	·sandboxInitAddr(SB), RODATA, $8
DATA	·sandboxInitAddr(SB)/8, $sandbox_init_trampoline<>(SB)

TEXT sandbox_free_error_trampoline<>(SB),NOSPLIT,$0-0
	JMP	libc_sandbox_free_error(SB)
GLOBL	·sandboxFreeErrorAddr(SB), RODATA, $8
DATA	·sandboxFreeErrorAddr(SB)/8, $sandbox_free_error_trampoline<>(SB)

TEXT sandbox_check_trampoline<>(SB),NOSPLIT,$0-0
	JMP	libc_sandbox_check(SB)
GLOBL	·sandboxCheckAddr(SB), RODATA, $8
DATA	·sandboxCheckAddr(SB)/8, $sandbox_check_trampoline<>(SB)

TEXT proc_listpids_trampoline<>(SB),NOSPLIT,$0-0
	JMP	libc_proc_listpids(SB)
GLOBL	·procListpidsAddr(SB), RODATA, $8
DATA	·procListpidsAddr(SB)/8, $proc_listpids_trampoline<>(SB)

TEXT fcntl_trampoline<>(SB),NOSPLIT,$0-0
	JMP	libc_fcntl(SB)
GLOBL	·fcntlAddr(SB), RODATA, $8
DATA	·fcntlAddr(SB)/8, $fcntl_trampoline<>(SB)

TEXT confstr_trampoline<>(SB),NOSPLIT,$0-0
	JMP	libc_confstr(SB)
GLOBL	·confstrAddr(SB), RODATA, $8
DATA	·confstrAddr(SB)/8, $confstr_trampoline<>(SB)
