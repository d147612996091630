package attack_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"syscall"
)

// acts returns what the confined test binary can try. Each act returns the kernel's answer.
func acts() map[string]func(args []string) error {
	all := fileActs()
	maps.Copy(all, netActs())
	maps.Copy(all, ownActs())
	maps.Copy(all, sharedActs())
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

// act does one act and returns the result as an exit status.
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

// num parses a number.
func num(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitError)
	}
	return n
}

// then makes calls in order and returns the first error.
func then(steps ...func() error) error {
	for _, s := range steps {
		if err := s(); err != nil {
			return err
		}
	}
	return nil
}

// errnoOf turns a raw system call's errno into an error.
func errnoOf(e syscall.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}
