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
	Writing atomic.Bool   // it waits for the caller's writer
	Moved   atomic.Uint64 // how often something came
	Over    chan struct{} // closed when no more comes, or nothing can be written
	Err     error         // of writing or reading, once Over is closed

	to   io.Writer
	take func(n int) (pass int, more bool) // how much of n bytes may pass; nil for all
}

// newPump makes a pump to w. It writes to a copy of a file's descriptor: a write to
// 1 or 2 that fails with EPIPE ends a Go program, and there is a session to end first.
func newPump(w io.Writer) (*Pump, error) {
	p := &Pump{to: w, Over: make(chan struct{})}
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
	if f, ok := p.to.(*os.File); ok && !p.Writing.Load() {
		f.Close()
	}
}

// run carries what comes from r, until there is no more.
func (p *Pump) run(r io.Reader) {
	defer close(p.Over)
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		for tries := 0; errors.Is(err, syscall.ENOMEM) && tries < 100; tries++ { // for a second
			time.Sleep(10 * time.Millisecond)
			n, err = r.Read(buf)
		}
		p.Writing.Store(true)
		more := true
		if p.take != nil {
			n, more = p.take(n)
		}
		if n > 0 {
			if _, p.Err = p.to.Write(buf[:n]); p.Err != nil {
				return
			}
		}
		p.Moved.Add(1)
		p.Writing.Store(false)
		if err != nil && err != io.EOF {
			p.Err = err
		}
		if err != nil || !more {
			return
		}
	}
}
