package supervise

import "errors"

// InBackground returns false: on macOS no process has to answer a command's calls.
func InBackground() bool { return false }

// Front returns errors.ErrUnsupported here.
func Front([]string) (Outcome, error) { return Outcome{}, errors.ErrUnsupported }

// Leave returns errors.ErrUnsupported here.
func Leave(Outcome) error { return errors.ErrUnsupported }
