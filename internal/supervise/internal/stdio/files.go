package stdio

import (
	"errors"
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

// Files are the descriptors 0, 1 and 2 of a command, and what copies between them and
// the caller's reader and writers.
type Files struct {
	Command [3]*os.File // for fork.Command.Files
	Pumps   []*Pump     // copy the output

	theirs []*os.File // those of Command that were made here
	in     *os.File   // our end of standard input
	from   io.Reader  // what is copied into it
	ours   []*os.File // our ends of the output, one for each pump
	max    int64      // of what is written; 0 for no limit
	left   atomic.Int64
	over   func() // called once when more was written
	once   sync.Once
}

// Open makes what a command needs to read from stdin, and to write to stdout and
// stderr. A file is passed on as it is; nil is /dev/null; anything else is copied through
// a pipe. max limits what the command writes to both together, in bytes; 0 is no limit.
// With a limit all output is copied, and over is called once if there is more. Close must
// be called, after an error, too.
func (f *Files) Open(stdin io.Reader, stdout, stderr io.Writer, max int64, over func()) error {
	f.max = max
	f.over = over
	f.left.Store(max)
	err := f.input(stdin)
	if err == nil {
		err = f.output(1, stdout)
	}
	if _, file := stderr.(*os.File); err == nil && !file && stderr != nil && same(stdout, stderr) {
		f.Command[2] = f.Command[1] // two pumps must not write to one writer
	} else if err == nil {
		err = f.output(2, stderr)
	}
	return err
}

// same reports whether two writers are one; those that can't be compared are not.
func same(a, b io.Writer) bool {
	defer func() { _ = recover() }()
	return a == b
}

func (f *Files) input(stdin io.Reader) error {
	if file, ok := stdin.(*os.File); ok {
		f.Command[0] = file
		return nil
	}
	if stdin == nil {
		return f.null(0, os.O_RDONLY)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making a pipe for the input: %w", err)
	}
	f.Command[0] = r
	f.in = w
	f.from = stdin
	f.theirs = append(f.theirs, r)
	return nil
}

func (f *Files) null(fd, flags int) error {
	null, err := os.OpenFile(os.DevNull, flags, 0)
	if err != nil {
		return err
	}
	f.Command[fd] = null
	f.theirs = append(f.theirs, null)
	return nil
}

func (f *Files) output(fd int, to io.Writer) error {
	if file, ok := to.(*os.File); ok && f.max == 0 {
		f.Command[fd] = file
		return nil
	}
	if to == nil && f.max == 0 {
		return f.null(fd, os.O_WRONLY)
	}
	if to == nil {
		to = io.Discard
	}
	p, err := newPump(to)
	if err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		p.close()
		return fmt.Errorf("making a pipe for the output: %w", err)
	}
	if f.max > 0 {
		p.take = f.count
	}
	f.Command[fd] = w
	f.theirs = append(f.theirs, w)
	f.ours = append(f.ours, r)
	f.Pumps = append(f.Pumps, p)
	return nil
}

// Begin starts copying, once the command runs. With job, output to a terminal that
// another job has does not stop this process: it ignores SIGTTOU from now on, which the
// command must not inherit.
func (f *Files) Begin(job bool) {
	if len(f.Pumps) > 0 && job {
		signal.Ignore(syscall.SIGTTOU)
	}
	for i, p := range f.Pumps {
		go func() {
			p.run(f.ours[i])
			f.ours[i].Close() // if output can't be written, the command gets SIGPIPE, as without zsbx
		}()
	}
	if f.in != nil {
		go func() {
			_, _ = io.Copy(f.in, f.from)
			f.in.Close()
		}()
	}
}

// Written returns how many bytes passed if there is a limit, and 0 without one.
func (f *Files) Written() int64 {
	return f.max - max(f.left.Load(), 0)
}

// count returns how many of n bytes the limit lets pass. If there are more, it calls over
// now: writing what may pass can take forever.
func (f *Files) count(n int) (pass int, more bool) {
	left := f.left.Add(-int64(n))
	if left >= 0 {
		return n, true
	}
	f.once.Do(f.over)
	return max(0, n+int(left)), false
}

// CloseCommand closes the command's ends in this process, once it has started.
func (f *Files) CloseCommand() {
	for _, t := range f.theirs {
		t.Close()
	}
	f.theirs = nil
}

// Close closes this process's ends, once all is over. A goroutine that still reads the
// caller's input goes on until there is some.
func (f *Files) Close() {
	for _, o := range f.ours {
		o.Close()
	}
	if f.in != nil {
		f.in.Close()
	}
	for _, p := range f.Pumps {
		p.close()
	}
}

// DrainTime is how long a pump may be idle before it is taken to be done, although
// something that the command left running keeps its end open.
const DrainTime = 200 * time.Millisecond

// Pump copies output from the command to the caller.
type Pump struct {
	Writing atomic.Bool   // it waits for the caller's writer
	Moved   atomic.Uint64 // how often something came
	Over    chan struct{} // closed when no more comes, or nothing can be written
	Err     error         // of writing or reading, once Over is closed

	to   io.Writer
	take func(n int) (pass int, more bool) // how much of n bytes may pass; nil for all
}

// newPump makes a pump to w. If w is a file, the pump writes to a copy of its descriptor:
// a write to 1 or 2 that fails with EPIPE ends a Go program, and zsbx has a session to end
// first.
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

// close closes the copy that newPump made, unless a write to it is stuck.
func (p *Pump) close() {
	if f, ok := p.to.(*os.File); ok && !p.Writing.Load() {
		f.Close()
	}
}

// run copies what comes from r, until there is no more.
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
			_, p.Err = p.to.Write(buf[:n])
			if p.Err != nil {
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
