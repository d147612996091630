package track

import (
	"io"
	"time"

	"github.com/zsbx/zsbx/track/internal/scan"
)

// Watch is the keeper of a session on macOS, where no process can adopt others:
// it waits beside the session, and ends it if its supervisor disappears. words is
// the pipe whose other end the supervisor has, and nobody else but the process
// that is about to become the command, until it carries the session's profile. So
// the pipe ends when all that the session is can be found. Unless the supervisor
// has said that it is over, end is called then, until it reports that it is done.
func Watch(words io.Reader, end func() bool) { scan.Watch(words, end, time.Sleep) }
