package watch

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Bounds of waiting for log(1): to begin, for more once the command has ended, and for
// the last of it.
const (
	streamBegins = 3 * time.Second
	streamQuiet  = 300 * time.Millisecond
	streamEnds   = 2 * time.Second
)

// stdinEnds runs a program until nobody holds the other end of standard input any more:
// also one that was killed leaves nothing behind.
const stdinEnds = `"$@" </dev/null & exec >&-; read -r _; kill $! 2>/dev/null`

// Stream is log(1) running beside a command.
type Stream struct {
	*Log
	stop io.Closer
	once sync.Once
}

// StartStream starts "log stream" for a session, and waits until it has begun; what is
// refused before that is not in it. Program is log(1).
func StartStream(program string, l *Log) (*Stream, error) {
	from := `processID == 0 AND eventMessage ENDSWITH "` + l.tag + `"` // no program can log as process 0
	cmd := exec.Command("/bin/sh", "-c", stdinEnds, "sh", program, "stream", "--style", "ndjson", "--predicate", from)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is the command's
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	stop, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		stop.Close()
		return nil, err
	}
	in, begun := bufio.NewReader(out), make(chan error, 1)
	go func() {
		_, err := in.ReadBytes('\n') // it first says what it filters by
		begun <- err
		for line := []byte(nil); err == nil; line, err = in.ReadBytes('\n') {
			l.Line(line)
		}
		stop.Close() // it may be the shell that goes on
		_ = cmd.Wait()
	}()
	select {
	case err = <-begun:
	case <-time.After(streamBegins):
		err = os.ErrDeadlineExceeded
	}
	if err != nil {
		stop.Close()
		return nil, fmt.Errorf("log stream did not begin: %w", err)
	}
	return &Stream{Log: l, stop: stop}, nil
}

// Report waits for what the log has still to say of a command that has ended, within
// bounds, and ends the stream.
func (s *Stream) Report() Report {
	s.once.Do(func() {
		for seen, end := -1, time.Now().Add(streamEnds); s.Log.Report().Seen != seen && time.Now().Before(end); time.Sleep(streamQuiet) {
			seen = s.Log.Report().Seen
		}
		s.stop.Close()
	})
	return s.Log.Report()
}
