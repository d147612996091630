package fork

import "fmt"

// Exec replaces the calling process by the command, which keeps its pid. It
// returns only when that failed; the calling thread may be restricted by then,
// so that the process should report the error and end.
//
// The Keeper, if there is one, is no ancestor of the command: it watches the
// process through a pidfd, and its proof that nothing is left is not ECHILD but
// that, after kill(-1, SIGKILL), no process is alive that it may signal. So
// Exec needs Keeper.Domain. Command.Meanwhile runs once the keeper is ready.
// On macOS there is no Keeper, and a Sandbox is needed; on other systems it
// returns errors.ErrUnsupported.
func Exec(c *Command) error {
	if c.Keeper != nil && !c.Keeper.Domain {
		return fmt.Errorf("replacing the process: a keeper without a domain can't watch it")
	}
	return execSelf(c)
}

// StartApart starts a program that is nobody's: not a child of this process, which
// may become a command that waits for its own children only, and without its
// terminal and session. It returns once the program was executed. Path, Args, Env,
// Dir and Files are what counts of c; without Files the program shares descriptors 0
// to 2. Linux only; on other systems it returns errors.ErrUnsupported.
func StartApart(c *Command) error { return startApart(c) }
