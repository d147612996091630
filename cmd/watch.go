package cmd

import (
	"errors"
	"os"
	"runtime"

	"github.com/zsbx/zsbx/track"
)

// watchArg is the argument by which zsbx is told to be a session's watcher; see
// track.Watch.
const watchArg = "__watch"

// watcher is the command line of one, nil where keepers do its work.
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
		return exitFailed
	}
	st, err := track.OpenStore()
	if err != nil {
		return exitFailed
	}
	o := &reapFlags{wait: endTime.String()}
	track.Watch(os.Stdin, func() bool {
		r, err := o.one(st, args[0])
		return errors.Is(err, track.ErrNotFound) || err == nil && r.Done()
	})
	return exitOK
}
