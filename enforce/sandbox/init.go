package sandbox

import (
	"context"
	"errors"
	"os"
	"runtime"
	"syscall"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/track"
)

// watchArg is the argument by which a program is told to be a session's watcher; see
// track.Watch.
const watchArg = "__watch"

// helperFailed is the exit status of a helper that could not do its work.
const helperFailed = 125

// Init has to be called first of all in main: on macOS a program that runs commands
// starts itself anew as a helper, to put the limits on and to watch over the
// session. In such a process Init does that and does not return.
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

// watcher is the command line of a session's watcher, nil where keepers do its work.
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

// watchSession is the watcher of the session that args names. Nobody reads what
// it could say: a session that it could not end stays in the store, where ps
// shows it.
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

// Background is the argument before all others of a program that Front started.
const Background = "__background"

// Outcome is how a program is to end: with a status, or by a signal if that is not
// 0.
type Outcome struct {
	Status int
	Signal syscall.Signal
}
