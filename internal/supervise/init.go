package supervise

import (
	"context"
	"errors"
	"os"
	"runtime"
	"syscall"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/track"
)

// watchArg is the argument that makes a program a session's watcher; see track.Watch.
const watchArg = "__watch"

// helperFailed is the exit status of a helper that could not do its work.
const helperFailed = 125

// Init must be called first in main. On macOS a program that runs commands starts itself
// again as a helper, to apply the limits and to watch over the session. In such a process
// Init does that and does not return.
func Init() {
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case fork.SandboxArg:
		os.Exit(fork.SandboxMain())
	case watchArg:
		os.Exit(watchSession(os.Args[2:]))
	}
}

// watcher returns the command line of a session's watcher, or nil where keepers do its
// work.
func watcher() []string {
	if runtime.GOOS != "darwin" {
		return nil
	}
	exe, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{exe, watchArg}
}

// watchSession watches over the session that args names. It prints nothing, as nobody
// would read it. A session that it could not end stays in the store, where ps shows it.
func watchSession(args []string) int {
	if len(args) != 1 {
		return helperFailed
	}
	st, err := track.OpenStore()
	if err != nil {
		return helperFailed
	}
	track.Watch(os.Stdin, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), endTime)
		defer cancel()
		r, err := Reap(ctx, st, args[0])
		return errors.Is(err, track.ErrNotFound) || err == nil && r.Done()
	})
	return 0
}

// Background is the first argument of a program that Front started.
const Background = "__background"

// Outcome says how the program should end: by Signal if that is not 0, else with Status.
type Outcome struct {
	Status int
	Signal syscall.Signal
}
