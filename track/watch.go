package track

import (
	"io"
	"time"
)

// wordOver is what a supervisor writes to its watcher when there is nothing to
// watch any more: the session has ended, or it is to go on.
const wordOver = 'o'

// Times of Watch.
const (
	watchTries = 20          // before a session is left to Store.Reap
	watchPause = time.Second // between two of them
)

// Watch is the keeper of a session on macOS, where no process can adopt others:
// it waits beside the session, and ends it if its supervisor disappears. words is
// the pipe whose other end the supervisor has, and nobody else but the process
// that is about to become the command, until it carries the session's profile. So
// the pipe ends when all that the session is can be found. Unless the supervisor
// has said that it is over, end is called then, until it reports that it is done.
func Watch(words io.Reader, end func() bool) {
	watch(words, end, time.Sleep)
}

// watch is Watch with a clock.
func watch(words io.Reader, end func() bool, sleep func(time.Duration)) {
	buf := make([]byte, 1)
	for {
		n, err := words.Read(buf)
		if n == 1 && buf[0] == wordOver {
			return
		}
		if err != nil { // io.EOF; any other end of the pipe is one, too
			break
		}
	}
	for range watchTries {
		if end() {
			return
		}
		sleep(watchPause)
	}
}
