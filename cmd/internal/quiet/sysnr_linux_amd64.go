package quiet

const (
	sysWrite       = 1
	sysSigaction   = 13
	sysSigprocmask = 14
	sysGetpid      = 39
	sysKill        = 62
	sysExitGroup   = 231
)
