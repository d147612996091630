package cmd

import (
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

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
