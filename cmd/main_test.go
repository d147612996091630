package cmd

import (
	"bytes"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the test binary stand in for zsbx in scripts.
func TestMain(m *testing.M) {
	// What is ignored stays ignored over exec; what is caught does not. The tests
	// of hang-ups have to pass under nohup(1), too.
	if filepath.Base(os.Args[0]) != "zsbx" && signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	testscript.Main(m, map[string]func(){
		"zsbx": func() { os.Exit(Main(os.Args[1:])) },
		// What a script's terminal still holds when the last program has ended is lost
		// (testscript closes it while it reads): shown writes more than it can hold.
		"shown": func() { os.WriteFile("/dev/tty", bytes.Repeat([]byte(" "), 1<<16), 0) },
	})
}
