package fork

// SandboxMain is the helper of Sandbox. A program that starts commands with a
// Sandbox calls it when its only argument is SandboxArg, before anything else,
// and exits with what it returns:
//
//	if len(os.Args) == 2 && os.Args[1] == fork.SandboxArg {
//		os.Exit(fork.SandboxMain())
//	}
//
// It returns only on failure, and always 125: the reason went to whoever
// started it. Outside of macOS it does nothing else.
func SandboxMain() int { return sandboxMain() }
