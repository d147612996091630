package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
)

// The descriptors that a process gets which stands by.
const (
	apartHand  = 0 // brings the queue
	apartState = 1 // a keptMediation, as JSON
)

// standBy starts it. The command's filter does not exist yet; the end of the pair
// of sockets by which its queue will come goes to that process, and this one
// keeps the other end, which closes when it executes or ends.
func (m *mediator) standBy(c *fork.Command) error {
	m.mu.Lock()
	done := m.done
	m.done = true
	m.mu.Unlock()
	if done {
		return errServed
	}
	m.apart = true
	defer m.Hand.close()
	fd, err := unix.FcntlInt(uintptr(m.Hand.parent), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return fmt.Errorf("copying the connection for the queue of socket calls: %w", err)
	}
	hand := os.NewFile(uintptr(fd), "connection")
	defer hand.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	defer w.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		r.Close()
		return err
	}
	own := *c
	own.Dir, own.Files = "/", []*os.File{apartHand: hand, apartState: r, 2: null}
	err = fork.StartApart(&own)
	null.Close()
	r.Close()
	if err == nil {
		err = json.NewEncoder(w).Encode(m.keep())
	}
	if err != nil {
		return fmt.Errorf("starting %s to answer socket calls: %w", c.Path, err)
	}
	return nil
}

func serveApart() error {
	notForThat := errors.New("this is for zsbx itself to call")
	kind, err := unix.GetsockoptInt(apartHand, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_SEQPACKET {
		return notForThat
	}
	// Descriptors 0 and 1 are not to become others.
	hand, err := unix.FcntlInt(apartHand, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return notForThat
	}
	state, err := unix.FcntlInt(apartState, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return notForThat
	}
	for _, fd := range []int{apartHand, apartState} {
		if err := unix.Dup3(2, fd, 0); err != nil {
			return fmt.Errorf("dup3: %w", err)
		}
	}
	f := os.NewFile(uintptr(state), "state")
	b, err := io.ReadAll(f)
	f.Close()
	if err != nil {
		return fmt.Errorf("reading what to allow: %w", err)
	}
	var k keptMediation
	if err := json.Unmarshal(b, &k); err != nil {
		return fmt.Errorf("reading what to allow: %w", err)
	}
	h := &handover{child: -1, parent: hand}
	listener, err := h.receive()
	switch err {
	case nil:
	case errNoQueue:
		return nil // the command was not executed
	default:
		return err
	}
	return k.mediator(listener).run()
}
