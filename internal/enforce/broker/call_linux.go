package broker

import (
	"bytes"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/egress/rule"
)

// Call is a system call of the command that waits for its answer. A leading goroutine reuses
// one Call for all.
type Call struct {
	notification
	broker *Broker
	from   caller
	relief *time.Timer
	waits  bool      // another goroutine leads, and this one does not block
	text   [512]byte // most paths are short

	descriptors []int // to close before the answer

	Verdict *rule.Verdict // why a host outside is refused, or can't be reached; nil for other refusals

	Notes any // for Record, kept from call to call
}

type answer struct {
	errno    unix.Errno // 0 for success
	val      int64      // the call's return value on success
	proceed  bool       // the kernel continues the call as if it had not been stopped
	deferred bool       // no answer yet: the call waits

	// later, if set, finds the answer in another goroutine, for a copy of the call.
	later func(*Call) answer
}

func refused(errno unix.Errno) answer { return answer{errno: errno} }

// restart makes the kernel repeat the call or fail with EINTR, depending on the pending
// signal's handler (ERESTARTSYS in the kernel's linux/errno.h).
const restart = unix.Errno(512)

// answer decides a call and sends the answer.
func (c *Call) answer() {
	b := c.broker
	var tell func(unix.Errno)
	if b.Record != nil {
		tell = b.Record(c)
		if tell == nil {
			c.close()
			return
		}
	}
	a := refused(unix.EAGAIN)
	if b.busy.Add(1) <= maxBusy && !b.crowded() {
		a = b.decide(c)
	}
	if a.later != nil {
		b.busy.Add(-1) // it has its own limit
		c.answerLater(a.later, tell)
		return
	}
	c.finish(a, tell)
	b.busy.Add(-1)
}

// finish sends an answer. Before that it closes the call's descriptors: a server may end at once and begin
// again, and a copy of its socket would keep the port in use.
func (c *Call) finish(a answer, tell func(unix.Errno)) {
	if tell != nil && a.errno != 0 {
		tell(a.errno)
	}
	c.close()
	c.respond(a)
}

// answerLater lets another goroutine find the answer, with a copy of the call and its descriptors. With
// Record this one does, since what Record notes belongs to its call.
func (c *Call) answerLater(find func(*Call) answer, tell func(unix.Errno)) {
	if tell != nil {
		if !c.waits {
			c.relieve()
		}
		c.finish(find(c), tell)
		return
	}
	own := *c
	own.relief = nil
	c.descriptors = nil
	c.broker.workers.Go(func() { own.finish(find(&own), nil) })
}

// close closes the call's descriptors. If the command has set SO_LINGER and has closed its own
// copy of a socket, close(2) waits until all that was sent has arrived, for nobody. A signal
// ends that. It does not end the transfer.
func (c *Call) close() {
	if len(c.descriptors) == 0 {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tid := unix.Gettid()
	closed := make(chan struct{})
	late := time.AfterFunc(patience, func() {
		for {
			interrupt(tid)
			select {
			case <-closed:
				return
			case <-time.After(patience):
			}
		}
	})
	for _, fd := range c.descriptors {
		unix.Close(fd)
	}
	close(closed)
	late.Stop()
}

func (c *Call) respond(a answer) {
	if err := c.broker.queue.send(c.id, a); err != nil {
		c.broker.finish(err)
	}
}

// decide decides one call. Several goroutines may do so at the same time.
func (b *Broker) decide(c *Call) answer {
	if c.pid == 0 {
		return refused(unix.EACCES)
	}
	switch c.nr {
	case unix.SYS_CONNECT:
		return b.connect(c)
	case unix.SYS_SOCKET:
		if b.policy.Own {
			return b.ownSocket(c)
		}
		return b.udp(c)
	case unix.SYS_BIND:
		return b.bind(c)
	case unix.SYS_SOCKETPAIR:
		return b.pair(c)
	case unix.SYS_LISTEN:
		return b.listen(c)
	}
	return b.signal(c)
}

// Tid is the calling thread. Nr and Args are the system call's number and arguments.
func (c *Call) Tid() int        { return c.from.tid }
func (c *Call) Nr() int32       { return c.nr }
func (c *Call) Args() [6]uint64 { return c.args }

// Crowded reports whether Record must not block.
func (c *Call) Crowded() bool { return c.broker.crowded() }

// Continue lets the kernel make the call as if it had not been stopped. Refuse makes it fail.
func (c *Call) Continue()               { c.respond(answer{proceed: true}) }
func (c *Call) Refuse(errno unix.Errno) { c.respond(refused(errno)) }

// Memory reads n bytes of the caller's memory, once.
func (c *Call) Memory(at uint64, n int) ([]byte, unix.Errno) {
	buf := make([]byte, n)
	return buf, c.from.read(at, buf)
}

// Text reads a string from the caller's memory. It returns "" if that fails.
func (c *Call) Text(at uint64) (out string) {
	const piece, longest = uint64(len(c.text)), 4096
	for len(out) < longest {
		b := c.text[:piece-at%piece]
		if errno := c.from.read(at, b); errno != 0 {
			return ""
		}
		text, _, ends := bytes.Cut(b, []byte{0})
		out += string(text)
		if ends {
			return out
		}
		at += uint64(len(b))
	}
	return ""
}

// Address reads a socket address from the caller's memory. It returns the path, the abstract
// name without its leading NUL byte, or the port in it. All are zero for other addresses.
func (c *Call) Address(at, length uint64) (path, name string, port uint16) {
	b, errno := c.Memory(at, int(min(length, maxAddress)))
	if errno != 0 {
		return "", "", 0
	}
	path, abstract := unixAddress(b)
	to, _ := internetAddress(b)
	return path, strings.TrimPrefix(abstract, "\x00"), to.Port()
}
