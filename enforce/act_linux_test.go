package enforce_test

import (
	"fmt"
	"os"
	"syscall"
)

// acts are what the confined test binary tries; each returns the kernel's
// answer.
func acts() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"nothing": func([]string) error { return nil },
	}
}

// act does one act and says as an exit status what came of it.
func act(name string, args []string) int {
	f, ok := acts()[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "no act %q\n", name)
		return exitNoAct
	}
	switch err := f(args).(type) {
	case nil:
		return 0
	case syscall.Errno:
		return int(err)
	default:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return exitError
	}
}
