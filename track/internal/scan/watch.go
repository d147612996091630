package scan

import (
	"io"
	"time"
)

// WordOver is what a supervisor writes to its watcher when there is nothing to
// watch any more: the session has ended, or it is to go on.
const WordOver = 'o'

// watchTries is how often an end is tried, before a session is left to Store.Reap.
const watchTries = 20

// Watch waits beside a session for its supervisor's end of a pipe to close. Unless
// WordOver was read before, it calls end then, once a second, until that reports that
// the session is ended, but not for ever.
func Watch(words io.Reader, end func() bool, sleep func(time.Duration)) {
	if n, _ := words.Read(make([]byte, 1)); n > 0 {
		return
	}
	for range watchTries {
		if end() {
			return
		}
		sleep(time.Second)
	}
}
