package cmd

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zsbx/zsbx/internal/testkit/internet"
)

// TestMain lets the test binary stand in for zsbx in scripts.
func TestMain(m *testing.M) {
	internet.Inside()
	if len(os.Args) > 2 && os.Args[1] == hostsAct {
		os.Exit(doHostsAct(os.Args[2], os.Args[3:]))
	}
	// An ignored signal stays ignored over exec, a caught one does not. The tests of
	// signals must also pass under nohup(1) and in the background of a script.
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if filepath.Base(os.Args[0]) != "zsbx" && signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	if os.Getenv(typingVariable) != "" {
		os.Unsetenv(typingVariable)
		typing()
		os.Exit(0)
	}
	// zsbx is alone in its directory on PATH, which is therefore not reported as closed.
	testscript.Main(m, map[string]func(){
		"zsbx": func() { os.Exit(Main(os.Args[1:])) },
	})
}
