package stdio

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
)

// Files are the descriptors 0, 1 and 2 of a command, and what is carried between
// them and the caller's reader and writers.
type Files struct {
	Command [3]*os.File // for fork.Command.Files
	Pumps   []*Pump     // what carries the output

	theirs []*os.File // of Command, those that were made here
	in     *os.File   // our end of standard input
	from   io.Reader  // what is carried into it
	ours   []*os.File // our ends of the output, one for each pump
	max    int64      // of what is written; 0 for no limit
	left   atomic.Int64
	over   func() // called once when more was written
	once   sync.Once
}

// Open makes what a command needs to read from stdin, and to write to stdout and
// stderr. A file is passed on as it is; nil is /dev/null; anything else is carried.
// max limits what the command writes to both together, in bytes, 0 for no limit; all
// of it is carried then, and over called once when it is more. Close has to be called,
// after an error, too.
func (f *Files) Open(stdin io.Reader, stdout, stderr io.Writer, max int64, over func()) error {
	f.max, f.over = max, over
	f.left.Store(max)
	err := f.input(stdin)
	if err == nil {
		err = f.output(1, stdout)
	}
	if _, file := stderr.(*os.File); err == nil && !file && stderr != nil && same(stdout, stderr) {
		f.Command[2] = f.Command[1] // one writer is not written to from two sides
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
	f.Command[0], f.in, f.from = r, w, stdin
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
	f.theirs, f.ours, f.Pumps = append(f.theirs, w), append(f.ours, r), append(f.Pumps, p)
	return nil
}

// Begin starts to carry, once the command runs. With job, output to a terminal that
// is another job's does not stop this process (SIGTTOU): the command is not to
// inherit that.
func (f *Files) Begin(job bool) {
	if len(f.Pumps) > 0 && job {
		signal.Ignore(syscall.SIGTTOU)
	}
	for i, p := range f.Pumps {
		go func() {
			p.run(f.ours[i])
			f.ours[i].Close() // when it can't be written the command gets SIGPIPE, as without us
		}()
	}
	if f.in != nil {
		go func() {
			_, _ = io.Copy(f.in, f.from)
			f.in.Close()
		}()
	}
}

// Written is how much was let pass where there is a limit, and 0 without.
func (f *Files) Written() int64 {
	return f.max - max(f.left.Load(), 0)
}

// count lets as much pass as the limit allows. What is more is told before the rest
// is written, which may take for ever.
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

// Close closes this process's ends, once all is over. Who still reads the caller's
// input goes on until there is some.
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
