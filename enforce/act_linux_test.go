package enforce_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"syscall"
)

// acts are what the confined test binary tries; each returns the kernel's
// answer.
func acts() map[string]func(args []string) error {
	all := fileActs()
	maps.Copy(all, netActs())
	maps.Copy(all, processActs())
	maps.Copy(all, signalActs())
	maps.Copy(all, kernelActs())
	maps.Copy(all, fileKeyActs())
	maps.Copy(all, subvolumeActs())
	maps.Copy(all, ipcActs())
	maps.Copy(all, benchActs())
	maps.Copy(all, socketActs())
	maps.Copy(all, brokerActs())
	maps.Copy(all, decideActs())
	maps.Copy(all, stormActs())
	return all
}

// act does one act and says as an exit status what came of it.
func act(name string, args []string) int {
	f, ok := acts()[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "no act %q\n", name)
		return exitNoAct
	}
	err := f(args)
	if err == nil {
		return 0
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return int(errno)
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	return exitError
}

// num reads an argument that is a number.
func num(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitError)
	}
	return n
}

// then joins the answers of calls that belong together: the first refusal.
func then(steps ...func() error) error {
	for _, s := range steps {
		if err := s(); err != nil {
			return err
		}
	}
	return nil
}

// errnoOf makes an error of a raw system call's answer.
func errnoOf(e syscall.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}
