package cmd

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pump carries output from the command to zsbx's caller. A nil pump does nothing.
type pump struct {
	to      *os.File
	take    func(n int) (pass int, more bool) // how much of n bytes may pass; nil for all
	writing atomic.Bool
	moved   atomic.Uint64 // how often something came
	over    chan struct{} // closed when no more comes, or nothing can be written
	err     error         // of writing or reading, once over is closed
}

// newPump makes a pump to f. It writes to a copy of the descriptor: a write to 1 or
// 2 that fails with EPIPE ends a Go program, zsbx has a session to end first.
func newPump(f *os.File) (*pump, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("copying the descriptor of %s: %w", f.Name(), err)
	}
	return &pump{to: os.NewFile(uintptr(fd), f.Name()), over: make(chan struct{})}, nil
}

// run carries what comes from r, until there is no more.
func (p *pump) run(r io.Reader) {
	defer close(p.over)
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		p.writing.Store(true)
		more := true
		if p.take != nil {
			n, more = p.take(n)
		}
		if n > 0 {
			if _, p.err = p.to.Write(buf[:n]); p.err != nil {
				return
			}
		}
		p.moved.Add(1)
		p.writing.Store(false)
		if err != nil && err != io.EOF {
			p.err = err
		}
		if err != nil || !more {
			return
		}
	}
}

// outputLimit copies stdout and stderr of a command and counts. Only with
// --max-output there is one: otherwise the command has the caller's own files.
type outputLimit struct {
	ends  []*os.File // the command's ends
	ours  []*os.File // the other ones
	pumps []*pump
	left  atomic.Int64
	limit chan struct{} // closed when more was written
	once  sync.Once
}

// newOutputLimit makes the pipes; files are the command's descriptors 0 to 2.
func newOutputLimit(max int64, stdout, stderr *os.File) (*outputLimit, error) {
	o := &outputLimit{limit: make(chan struct{})}
	o.left.Store(max)
	for _, to := range []*os.File{stdout, stderr} {
		p, err := newPump(to)
		if err != nil {
			o.closeEnds()
			return nil, err
		}
		r, w, err := os.Pipe()
		if err != nil {
			o.closeEnds()
			return nil, fmt.Errorf("making a pipe for the output: %w", err)
		}
		p.take = o.count
		o.ends, o.ours, o.pumps = append(o.ends, w), append(o.ours, r), append(o.pumps, p)
	}
	return o, nil
}

// begin starts copying, once the command runs: it is not to inherit that a terminal
// which is another job's does not stop it for its output (SIGTTOU).
func (o *outputLimit) begin() {
	if o == nil {
		return
	}
	signal.Ignore(syscall.SIGTTOU)
	for i, p := range o.pumps {
		go func() {
			p.run(o.ours[i])
			o.ours[i].Close() // when it can't be written the command gets SIGPIPE, as without zsbx
		}()
	}
}

// count lets as much pass as the limit allows. What is more is told before the rest
// is written, which may take for ever.
func (o *outputLimit) count(n int) (pass int, more bool) {
	left := o.left.Add(-int64(n))
	if left >= 0 {
		return n, true
	}
	o.once.Do(func() { close(o.limit) })
	return max(0, n+int(left)), false
}

// closeEnds closes the command's ends in zsbx.
func (o *outputLimit) closeEnds() {
	if o == nil {
		return
	}
	for _, f := range o.ends {
		f.Close()
	}
}

// exceeded is closed when the command wrote too much.
func (o *outputLimit) exceeded() <-chan struct{} {
	if o == nil {
		return nil
	}
	return o.limit
}

// wordTime is how long zsbx tries to say one thing while the command runs or after.
const wordTime = time.Second

// patient writes for a limited time only: the terminal may be stopped, and nobody may
// read the pipe. What can't be said then is left out, and all that follows. A
// terminal that is another job's does not stop zsbx for what it says (SIGTTOU).
type patient struct {
	w     io.Writer
	mu    sync.Mutex
	stuck bool
}

func (p *patient) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stuck {
		return 0, os.ErrDeadlineExceeded
	}
	signal.Ignore(syscall.SIGTTOU)
	said := make(chan error, 1)
	words := append([]byte(nil), b...)
	go func() {
		_, err := p.w.Write(words)
		said <- err
	}()
	select {
	case err := <-said:
		return len(b), err
	case <-time.After(wordTime):
		p.stuck = true
		return 0, os.ErrDeadlineExceeded
	}
}

// formatBytes writes a size as people do.
func formatBytes(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; i < len(units)-1 && n >= 1024 && n%1024 == 0; i++ {
		n /= 1024
	}
	return fmt.Sprintf("%d %s", n, units[i])
}
