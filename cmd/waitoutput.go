package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// How long a pump that is not writing may be without anything to carry before it is
// taken to be done, while what the command left running keeps its terminal open;
// and how long what was killed for its limits may take to be written.
const (
	drainTime = 200 * time.Millisecond
	rushTime  = time.Second
)

// lastOutput waits until what zsbx carries for the command has arrived, for as long
// as the reader takes: until the time limit, or a signal. The error says what was
// lost; its status counts where the command's own is 0.
func (r *running) lastOutput() error {
	pumps := []*pump{}
	if r.output != nil {
		pumps = r.output.pumps
	}
	if p := r.relay.pump(); p != nil {
		pumps = append(pumps, p)
	}
	if len(pumps) == 0 {
		return nil
	}
	defer r.deaf()
	var late <-chan time.Time
	var lost []error
	for _, p := range pumps {
		over, err := r.arrived(p, &late)
		if !over {
			return err
		}
		lost = append(lost, err)
	}
	return errors.Join(lost...)
}

// arrived waits for one pump, and reports whether there is time for another one. late
// is made when a pump takes longer than usual.
func (r *running) arrived(p *pump, late *<-chan time.Time) (bool, error) {
	for {
		before := p.moved.Load()
		select {
		case <-p.over:
			return true, lostOutput(p.err)
		case <-time.After(drainTime):
		case <-*late:
			return false, r.outputLate()
		case s := <-r.signals:
			if err := endBy(s); err != nil {
				return false, err
			}
		}
		if !p.writing.Load() && p.moved.Load() == before {
			return true, nil
		}
		if *late == nil {
			*late = r.takeTime()
		}
	}
}

// takeTime makes the waiting for a slow reader one that can be ended, from the
// keyboard too, and gives the time that it may take at most.
func (r *running) takeTime() <-chan time.Time {
	r.relay.restore()
	if r.signals == nil {
		r.s.EndForward()
		r.signals = listen()
	}
	switch {
	case r.wasEnded() || endBy(r.passedOn()) != nil:
		return time.After(rushTime)
	case r.limits.Timeout > 0:
		return time.After(max(rushTime, time.Until(r.began.Add(r.limits.Timeout))))
	}
	return make(chan time.Time)
}

// lostOutput says what became of output that could not be carried. Who writes to a
// pipe that nobody reads ends by SIGPIPE, and without a word.
func lostOutput(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EPIPE):
		return status(exitSignal + int(syscall.SIGPIPE))
	}
	doing := "writing"
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
		if pe.Op == "read" {
			doing = "reading"
		}
	}
	return &failure{code: codeOutput, status: exitAfter, err: fmt.Errorf("%s the command's output: %w", doing, err)}
}

// outputLate gives up what nobody takes.
func (r *running) outputLate() error {
	if r.wasEnded() {
		return nil // the message that said so says as much
	}
	if err := endBy(r.passedOn()); err != nil {
		return err
	}
	return &failure{
		code: codeOutput, status: exitTimeout,
		err: fmt.Errorf("nobody took all of the command's output within %s (%s)", r.limits.Timeout, r.limits.TimeoutFrom),
	}
}

// wasEnded reports whether zsbx ended the command, or has lost it.
func (r *running) wasEnded() bool {
	return r.timedOut.Load() || r.killed.Load() || !r.exited.Load()
}

// passedOn is the last signal that the command was sent by zsbx's caller, or 0.
func (r *running) passedOn() syscall.Signal {
	return cmp.Or(r.s.Forwarded(), syscall.Signal(r.passed.Load()))
}

// endBy is the end by a signal while output is waiting, for those that are to end
// zsbx.
func endBy(s os.Signal) error {
	switch s {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM:
	default:
		return nil
	}
	f := &failure{
		code: codeOutput, status: exitSignal + int(s.(syscall.Signal)),
		err: fmt.Errorf("not all of the command's output was written: %s", s),
	}
	if s == syscall.SIGINT {
		f.signal = syscall.SIGINT
	}
	return f
}
