package watch

import (
	"bufio"
	"errors"
	"io"
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
	lines chan struct{} // one for each line, closed at its end
	stop  func()
	once  sync.Once
}

// StartStream starts "log stream" for a session, and waits until it has begun; what is
// refused before that is not in it. Program is log(1).
func StartStream(program string, l *Log) (*Stream, error) {
	cmd := exec.Command("/bin/sh", "-c", stdinEnds, "sh", program, "stream", "--style", "ndjson", "--predicate", l.predicate())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is the command's
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	w, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	s := &Stream{Log: l, lines: make(chan struct{}, 1), stop: func() { w.Close() }}
	go s.read(out, cmd)
	if !s.line(streamBegins) { // it first says what it filters by
		s.stop()
		return nil, errors.New("log stream did not begin")
	}
	return s, nil
}

func (s *Stream) read(out io.Reader, cmd *exec.Cmd) {
	for in := bufio.NewReader(out); ; {
		line, err := in.ReadBytes('\n')
		if err != nil {
			break
		}
		s.Line(line)
		select {
		case s.lines <- struct{}{}:
		default:
		}
	}
	s.stop() // it may be the shell that goes on
	_ = cmd.Wait()
	close(s.lines)
}

// line waits for a line, and reports whether one came.
func (s *Stream) line(most time.Duration) bool {
	select {
	case _, ok := <-s.lines:
		return ok
	case <-time.After(most):
		return false
	}
}

// Report waits for what the log has still to say of a command that has ended, within
// bounds, and ends the stream.
func (s *Stream) Report() Report {
	s.once.Do(func() {
		for end := time.Now().Add(streamEnds); s.line(streamQuiet) && time.Now().Before(end); {
		}
		s.stop()
	})
	return s.Log.Report()
}
