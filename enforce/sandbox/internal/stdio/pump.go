package stdio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// DrainTime is how long a pump that is not writing may be without anything to carry
// before it is taken to be done, while what the command left running keeps its end
// open.
const DrainTime = 200 * time.Millisecond

// Pump carries output from the command to the caller.
type Pump struct {
	to      io.Writer
	take    func(n int) (pass int, more bool) // how much of n bytes may pass; nil for all
	writing atomic.Bool
	moved   atomic.Uint64 // how often something came
	over    chan struct{} // closed when no more comes, or nothing can be written
	err     error         // of writing or reading, once over is closed
}

// Over is closed when no more comes, or nothing can be written.
func (p *Pump) Over() <-chan struct{} { return p.over }

// Err is the error of writing or reading, once Over is closed.
func (p *Pump) Err() error { return p.err }

// Moved counts how often something came.
func (p *Pump) Moved() uint64 { return p.moved.Load() }

// Writing reports whether the pump waits for the caller's writer.
func (p *Pump) Writing() bool { return p.writing.Load() }

// newPump makes a pump to w. It writes to a copy of a file's descriptor: a write to
// 1 or 2 that fails with EPIPE ends a Go program, and there is a session to end first.
func newPump(w io.Writer) (*Pump, error) {
	p := &Pump{to: w, over: make(chan struct{})}
	if f, ok := w.(*os.File); ok {
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return nil, fmt.Errorf("copying the descriptor of %s: %w", f.Name(), err)
		}
		p.to = os.NewFile(uintptr(fd), f.Name())
	}
	return p, nil
}

// close closes the copy that newPump made. A writer that is stuck keeps it.
func (p *Pump) close() {
	if f, ok := p.to.(*os.File); ok && !p.Writing() {
		f.Close()
	}
}

// run carries what comes from r, until there is no more.
func (p *Pump) run(r io.Reader) {
	defer close(p.over)
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		for tries := 0; errors.Is(err, syscall.ENOMEM) && tries < 100; tries++ { // for a second
			time.Sleep(10 * time.Millisecond)
			n, err = r.Read(buf)
		}
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
