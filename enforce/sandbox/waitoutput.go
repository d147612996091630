package sandbox

import (
	"cmp"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/enforce/sandbox/internal/stdio"
)

// rushTime is how long what was ended for its limits may take to be written.
const rushTime = time.Second

// lastOutput waits until what is carried for the command has arrived, for as long
// as the reader takes: until the time limit, or a signal. The error says what was
// lost.
func (c *Command) lastOutput() error {
	pumps := c.files.Pumps
	if p := c.relay.Pump(); p != nil {
		pumps = append(pumps, p)
	}
	if len(pumps) == 0 {
		return nil
	}
	c.relay.Restore() // the keyboard is to end the waiting, too
	if c.o.Job && c.signals == nil {
		c.signals = listen() // first, or a signal that comes between ends this process
		c.s.EndForward()
	}
	defer c.deaf()
	late := c.late()
	var lost []error
	for _, p := range pumps {
		over, err := c.arrived(p, late)
		if !over {
			return err
		}
		lost = append(lost, err)
	}
	return errors.Join(lost...)
}

// arrived waits for one pump, and reports whether there is time for another one.
func (c *Command) arrived(p *stdio.Pump, late <-chan time.Time) (bool, error) {
	for {
		before := p.Moved.Load()
		select {
		case <-p.Over:
			return true, lostOutput(p.Err)
		case <-time.After(stdio.DrainTime):
		case <-late:
			return false, c.outputLate()
		case s := <-c.signals:
			if err := endBy(s); err != nil {
				return false, err
			}
		}
		if !p.Writing.Load() && p.Moved.Load() == before {
			return true, nil
		}
	}
}

// late is when a slow reader has had its time; nil for never.
func (c *Command) late() <-chan time.Time {
	switch {
	case !c.endedItself() || endBy(c.passedOn()) != nil:
		return time.After(rushTime)
	case c.limits.Timeout > 0:
		return time.After(max(rushTime, time.Until(c.began.Add(c.limits.Timeout))))
	}
	return nil
}

// lostOutput says what became of output that could not be carried.
func lostOutput(err error) error {
	if err == nil {
		return nil
	}
	out := &OutputError{Err: err}
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		out.Err, out.Read = pe.Err, pe.Op == "read"
	}
	return out
}

// outputLate gives up what nobody takes.
func (c *Command) outputLate() error {
	if !c.endedItself() {
		return nil // the message that said so says as much
	}
	if err := endBy(c.passedOn()); err != nil {
		return err
	}
	return &OutputError{Late: c.timeLimit()}
}

// passedOn is the last signal of the caller's that the command was sent, or 0.
func (c *Command) passedOn() syscall.Signal {
	return cmp.Or(c.s.Forwarded(), syscall.Signal(c.passed.Load()))
}

// endBy is the end by a signal while output is waiting, for those that are to end
// this process.
func endBy(s os.Signal) error {
	switch s {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM:
		return &OutputError{Signal: s.(syscall.Signal)}
	}
	return nil
}
