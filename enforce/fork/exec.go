package fork

import (
	"errors"
	"runtime"
)

// Exec replaces the calling process by the command, which keeps its pid. It
// returns only when that failed; Before and Steps are made in a thread of their
// own, which ends with it, so that the caller is as it was, but for its working
// directory, its Files and what the Steps did to the whole process. There is no
// Keeper, no Limit and nobody to Forward signals.
//
// On macOS a Sandbox is needed, which holds the caller from then on; on other
// systems it returns errors.ErrUnsupported.
func Exec(c *Command) error {
	if c.Keeper != nil {
		return errors.New("replacing the process: it can't have a keeper")
	}
	if err := c.prepare(); err != nil {
		return err
	}
	if err := c.commit(nil); err != nil {
		return err
	}
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this function
		failed <- execSelf(c)
	}()
	return <-failed
}
