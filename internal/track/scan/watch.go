package scan

import (
	"io"
	"time"
)

// WordOver is what a supervisor writes to its watcher when there is nothing left to watch,
// because the session has ended or is kept.
const WordOver = 'o'

// watchTries is how often Watch tries to end a session before it leaves that to Store.Reap.
const watchTries = 20

// Watch waits until the supervisor closes its end of a pipe. Unless it reads WordOver first, it
// then calls end once a second until that returns true, at most watchTries times.
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
