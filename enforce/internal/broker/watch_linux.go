package broker

import (
	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
)

// Watcher sees the calls of a command before they are answered.
type Watcher interface {
	// Watch answers a call, or leaves it to the broker.
	Watch(c *Call) (answered bool)
	// Refused is told what the broker answered that was left to it.
	Refused(c *Call, errno unix.Errno)
}

// Observe has a watcher see the calls, from the command's first on, which is its
// execve(2): they are served at once, and Serve only waits for the end.
func (m *Broker) Observe(w Watcher, c *fork.Command) {
	m.watcher = w
	then := c.Meanwhile
	c.Meanwhile = func(p *fork.Process) {
		if then != nil {
			then(p)
		}
		go func() { _ = m.serve() }()
		m.early.Store(true)
	}
}

// Call is a call that waits for its answer.
type Call struct {
	m *mediator
	c *request
}

// Tid is the thread that made it, Nr and Args are what it asks for.
func (c *Call) Tid() int        { return int(c.c.pid) }
func (c *Call) Nr() int32       { return c.c.nr }
func (c *Call) Args() [6]uint64 { return c.c.args }

// Continue has the kernel make the call as if nobody had looked, Refuse gives it an
// error instead.
func (c *Call) Continue()               { c.m.respond(c.c.id, answer{proceed: true}) }
func (c *Call) Refuse(errno unix.Errno) { c.m.respond(c.c.id, refused(errno)) }

// Memory reads n bytes of the caller's memory.
func (c *Call) Memory(at uint64, n int) ([]byte, unix.Errno) { return c.c.from.memory(at, n) }

// Address is what a socket address of the caller's names: a path, an abstract name
// without its NUL byte, or a port. None of them is for what is no such address.
func (c *Call) Address(at, length uint64) (path, name string, port uint16) {
	b, errno := c.Memory(at, int(min(length, maxAddress)))
	if errno != 0 {
		return "", "", 0
	}
	switch kind, name := parseAddress(b); kind {
	case addressPath:
		return name, "", 0
	case addressAbstract:
		return "", name[1:], 0
	}
	port, _ = internetPort(b)
	return "", "", port
}
