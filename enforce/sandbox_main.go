package enforce

import "github.com/zsbx/zsbx/enforce/fork"

// SandboxArg is the argument by which a program that starts confined commands
// is told to be their helper on macOS.
const SandboxArg = fork.SandboxArg

// SandboxMain is that helper. Such a program has to begin with
//
//	if len(os.Args) == 2 && os.Args[1] == enforce.SandboxArg {
//		os.Exit(enforce.SandboxMain(nil))
//	}
//
// The arguments after SandboxArg are args; there are none. It does not return
// when all goes well, for it becomes the command. On other systems it does
// nothing and returns 125.
func SandboxMain(args []string) int {
	if len(args) > 0 {
		return helperMisused
	}
	return fork.SandboxMain()
}

// helperMisused is the exit status of a helper that nobody called as one.
const helperMisused = 125
