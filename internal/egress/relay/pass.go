package relay

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// How bytes are passed on.
const (
	small  = 512                    // bytes of the buffer of an idle connection
	large  = 64 << 10               // bytes of one that is busy
	enough = 256 << 10              // bytes after which the kernel may copy
	atOnce = 4 << 20                // bytes that the kernel copies before it is asked again
	idle   = 100 * time.Millisecond // after which a connection is idle
)

// buffers are those of busy connections.
var buffers = sync.Pool{New: func() any { return new([large]byte) }}

// counter counts what is written.
type counter struct {
	to io.Writer
	n  *atomic.Int64
}

func (c counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n.Add(int64(n))
	return n, err
}

// pass passes bytes on until the source ends or something fails: from is the error of the source,
// io.EOF at its end; to is that of the destination. An idle connection holds a small buffer only.
func pass(dst, src net.Conn, n *atomic.Int64) (from, to error) {
	buffer := make([]byte, small)
	out := counter{dst, n}
	for {
		k, err := src.Read(buffer)
		if k > 0 {
			if _, err := out.Write(buffer[:k]); err != nil {
				return nil, err
			}
		}
		if err != nil {
			return err, nil
		}
		if k < small {
			continue
		}
		from, to = busy(dst, src, n)
		if from != nil || to != nil {
			return from, to
		}
	}
}

// busy passes bytes on until none came for a moment. Then both errors are nil.
func busy(dst, src net.Conn, n *atomic.Int64) (from, to error) {
	defer src.SetReadDeadline(time.Time{})
	buffer := buffers.Get().(*[large]byte)
	out := counter{dst, n}
	for total := 0; total < enough; {
		src.SetReadDeadline(time.Now().Add(idle))
		k, err := src.Read(buffer[:])
		total += k
		if k > 0 {
			if _, err := out.Write(buffer[:k]); err != nil {
				buffers.Put(buffer)
				return nil, err
			}
		}
		if err != nil {
			buffers.Put(buffer)
			return notIdle(err), nil
		}
	}
	buffers.Put(buffer)
	return splice(dst, src, n)
}

// notIdle returns an error, but nil for the deadline.
func notIdle(err error) error {
	var e net.Error
	if errors.As(err, &e) && e.Timeout() {
		return nil
	}
	return err
}

// splice lets the kernel copy, where it can.
func splice(dst, src net.Conn, n *atomic.Int64) (from, to error) {
	into, ok := dst.(*net.TCPConn)
	_, also := src.(*net.TCPConn)
	if !ok || !also {
		return nil, nil
	}
	for {
		src.SetReadDeadline(time.Now().Add(idle))
		k, err := into.ReadFrom(&io.LimitedReader{R: src, N: atOnce})
		n.Add(k)
		if err != nil {
			if notIdle(err) == nil {
				return nil, nil
			}
			return whose(src, n, into, err)
		}
		if k < atOnce {
			return io.EOF, nil
		}
	}
}

// whose finds out which side an error of splice is about: the destination's, if the source still works.
func whose(src net.Conn, n *atomic.Int64, dst net.Conn, failed error) (from, to error) {
	src.SetReadDeadline(time.Now().Add(idle))
	buffer := make([]byte, small)
	k, err := src.Read(buffer)
	if k == 0 && notIdle(err) != nil {
		return failed, nil
	}
	_, to = counter{dst, n}.Write(buffer[:k])
	if to == nil {
		to = failed
	}
	return nil, to
}

// closeWrite says to a peer that nothing more comes.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
		return
	}
	c.Close()
}

// linger says what becomes of a connection that is closed, if only because this process ends: with 0
// it is reset, so that its peer sees that something is missing; with -1 the kernel sends the rest.
func linger(c net.Conn, seconds int) {
	if up, ok := c.(*Up); ok {
		c = up.Conn
	}
	if tcp, ok := c.(interface{ SetLinger(int) error }); ok {
		tcp.SetLinger(seconds)
	}
}

// reset closes a connection so that its peer sees that something is missing.
func reset(c net.Conn) {
	linger(c, 0)
	c.Close()
}
