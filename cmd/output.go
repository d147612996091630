package cmd

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// outputLimit copies stdout and stderr of a command and counts. Only with
// --max-output there is one: otherwise the command has the caller's own files.
type outputLimit struct {
	ends  []*os.File // the command's ends
	wg    sync.WaitGroup
	left  atomic.Int64
	limit chan struct{} // closed when more was written
	once  sync.Once
}

// newOutputLimit makes the pipes; files are the command's descriptors 0 to 2.
func newOutputLimit(max int64, stdout, stderr *os.File) (*outputLimit, error) {
	o := &outputLimit{limit: make(chan struct{})}
	o.left.Store(max)
	for _, to := range []*os.File{stdout, stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			o.closeEnds()
			return nil, fmt.Errorf("making a pipe for the output: %w", err)
		}
		o.ends = append(o.ends, w)
		o.wg.Add(1)
		go o.copy(to, r)
	}
	return o, nil
}

// copy writes what comes from r to w, as far as the limit allows. When w can't
// be written, r is closed: the command gets SIGPIPE, as without zsbx.
func (o *outputLimit) copy(w io.Writer, r *os.File) {
	defer o.wg.Done()
	defer r.Close()
	over := o.limit
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		left := o.left.Add(-int64(n))
		if left < 0 {
			n = max(0, n+int(left))
		}
		if _, werr := w.Write(buf[:n]); err != nil || werr != nil {
			return
		}
		if left < 0 {
			o.once.Do(func() { close(over) })
			return
		}
	}
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

// drain waits until all output was copied. All writers are gone by then.
func (o *outputLimit) drain() {
	if o != nil {
		o.wg.Wait()
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
