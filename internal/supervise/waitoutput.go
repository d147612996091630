package supervise

import (
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/internal/supervise/internal/stdio"
)

// rushTime is how long the output of a command that did not end by itself may take.
const rushTime = time.Second

// lastOutput waits until the command's output has been written, for as long as the reader
// takes, but at most until the time limit or a signal. The error says what was lost.
func (c *Command) lastOutput() error {
	pumps := c.files.Pumps
	if p := c.relay.Pump(); p != nil {
		pumps = append(pumps, p)
	}
	if len(pumps) == 0 {
		return nil
	}
	c.relay.Restore() // so that the keyboard can end the wait
	c.endPassing()
	defer c.stopListening()
	rush := time.Now().Add(rushTime)
	late := c.late(rush)
	var lost []error
	for _, p := range pumps {
		over, err := c.arrived(p, rush, late)
		if !over {
			return err
		}
		lost = append(lost, err)
	}
	return errors.Join(lost...)
}

// arrived waits for one pump, and reports whether there is time left for another one. After
// late, if that is not zero, there is none. After a signal there is time until rush.
func (c *Command) arrived(p *stdio.Pump, rush, late time.Time) (bool, error) {
	for {
		if endBy(c.passedOn()) != nil {
			late = rush
		}
		before := p.Moved.Load()
		select {
		case <-p.Over:
			return true, lostOutput(p.Err)
		case <-time.After(stdio.DrainTime):
		case s := <-c.signals:
			if err := endBy(s); err != nil {
				return false, err
			}
		}
		if !p.Writing.Load() && p.Moved.Load() == before {
			return true, nil
		}
		if !late.IsZero() && time.Now().After(late) {
			return false, c.outputLate()
		}
	}
}

// late returns when the time of a slow reader is over; zero for never. It does not change if
// the last output goes beyond a limit.
func (c *Command) late(rush time.Time) time.Time {
	switch {
	case !c.endedItself():
		return rush
	case c.limits.Timeout.Value > 0:
		if end := c.began.Add(time.Duration(c.limits.Timeout.Value)); end.After(rush) {
			return end
		}
		return rush
	}
	return time.Time{}
}

// lostOutput returns the error for output that could not be copied.
func lostOutput(err error) error {
	if err == nil {
		return nil
	}
	out := &OutputError{Err: err}
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		out.Err = pe.Err
		out.Read = pe.Op == "read"
	}
	return out
}

// outputLate returns the error for output that was not read in time.
func (c *Command) outputLate() error {
	if !c.endedItself() {
		return nil // an earlier message explains it
	}
	if err := endBy(c.passedOn()); err != nil {
		return err
	}
	return &OutputError{Late: c.timeLimit()}
}

// passedOn returns the last signal that was passed on to the command, or 0.
func (c *Command) passedOn() syscall.Signal {
	return syscall.Signal(c.passed.Load())
}

// endBy returns the error for a signal that came while output was waiting, or nil for one
// that does not end this process.
func endBy(s os.Signal) error {
	switch s {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM:
		return &OutputError{Signal: s.(syscall.Signal)}
	}
	return nil
}
