package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/supervise/internal/job"
	"github.com/zsbx/zsbx/internal/track"
)

// Result is how a command ended, and what it left.
type Result struct {
	Status syscall.WaitStatus // how the command ended; SIGKILL if that is not known, or at the limit of output
	Report track.Report       // what was ended with it, what is left, and whether that is certain
	Failed bool               // the command ended by itself, and not with 0

	// Changes are files that appeared or changed meanwhile, and that are denied or that other
	// programs execute or trust.
	Changes []enforce.Change

	// Hosts has what the command did with hosts outside, those with most connections first.
	Hosts []HostUse

	// Reached has the rules that the command needed, with Options.ObserveHosts.
	Reached []rule.Rule

	// Layer has what the command wrote, if the policy has writes = "try"; nil if that is nothing.
	Layer *layer.Layer

	// Home has the files that were written into a private home, and directories, which end in
	// "/". It is empty if the home is kept.
	Home []string
}

// ExitCode returns the command's exit status, or 128 plus the number of the signal that
// ended it, as a shell does.
func (r *Result) ExitCode() int { return exitCode(r.Status) }

func exitCode(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

// Wait follows the command to its end, ends what it left running, and reports. With Options.Job
// the caller calls Told once it has reported what is in the Result. The
// error joins what else went wrong: *LimitError, ErrLost, the context's error,
// *OutputError, and *Error of CodeSession.
//
// It reads the events itself: through another goroutine each would come a thread switch
// later. The keeper enforces the time limit: see fork.Limit.
func (c *Command) Wait() (Result, error) {
	if c.trouble != nil {
		c.warn(Warning{Text: c.trouble.Error()})
	}
	lost := c.follow()
	if c.o.Keep {
		c.answer(true) // Next is not called any more, which would say when
	}
	c.drain()
	c.detach()
	over := c.wroteTooMuch()
	err := errors.Join(c.ended(lost), c.lastOutput())
	if over == nil {
		over = c.wroteTooMuch() // perhaps only at the end
	}
	c.relay.Restore()
	var r Result
	if c.emptied {
		c.clearUp(&r) // while the keeper ends, for which close waits
	} else {
		c.stopListening() // it may take long
	}
	report, closeErr := c.close()
	c.kept = report.Kept
	c.proxy.Close(!c.canceled.Load())
	c.stopListening()
	c.answer(false)
	c.files.Close()
	c.relay.Close()
	if !c.exited.Load() || over != nil {
		c.status = syscall.WaitStatus(syscall.SIGKILL) // so that nobody takes it for a success
	}
	r.Status = c.status
	r.Report = report
	r.Hosts, r.Reached = c.endHosts()
	r.Failed = c.endedItself() && c.status.Exited() && c.status.ExitStatus() != 0
	if !c.emptied {
		c.clearUp(&r)
	}
	err = c.log.end(c, &r, errors.Join(over, err, closeErr, c.endLayer(&r)))
	if !c.o.Job {
		c.Told()
	}
	return r, err
}

// clearUp looks at what the command changed, and removes its temporary directory.
func (c *Command) clearUp(r *Result) {
	if c.before != nil {
		r.Changes = c.before.Changes()
	}
	if !r.Report.Kept {
		r.Home = homeWrites(c.plan)
	}
	c.leaveTemp(r.Report.Kept)
}

// leaveTemp removes the private temporary directory, unless background processes may
// still need it.
func (c *Command) leaveTemp(kept bool) {
	if kept {
		return
	}
	if err := c.temp.Remove(); err != nil {
		c.warn(Warning{Text: fmt.Sprintf("removing the private temporary directory: %v", err)})
	}
}

// follow handles what happens until the command has ended. The error says why it is
// not known how.
func (c *Command) follow() (lost error) {
	for done := false; !done; {
		done, lost = c.event(c.s.Next())
	}
	return lost
}

// endedItself reports whether the command ended without being ended by this package.
func (c *Command) endedItself() bool {
	return c.exited.Load() && !c.timedOut.Load() && !c.tooMuch.Load() && !c.canceled.Load()
}

// wroteTooMuch returns an error, and warns, if the command wrote too much. The command may
// have ended since, by SIGPIPE or otherwise.
func (c *Command) wroteTooMuch() error {
	if !c.tooMuch.Load() {
		return nil
	}
	over := &LimitError{Limit: limitOutput, Bytes: c.limits.MaxOutput.Value, From: c.limits.MaxOutput.From}
	c.warn(Warning{Text: over.Error()})
	return over
}

// event handles one event. done reports whether it was the last one. The error says why
// it is not known how the command ended.
func (c *Command) event(ev fork.Event, err error) (done bool, _ error) {
	switch {
	case err != nil && c.exited.Load():
		return true, nil // closing the session ends what is left
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.timeOver()
		return true, nil
	case err != nil:
		return true, err
	}
	switch ev.Kind {
	case fork.Stopped:
		c.stop()
	case fork.TimedOut:
		c.timeOver()
	case fork.Exited:
		c.status = ev.Status
		c.reaped = ev.Killed > 0
		c.exited.Store(true)
		switch {
		case c.o.Keep && !c.canceled.Load():
			if c.o.Job {
				// What goes on running may use the terminal while another job has it. That
				// stops its process group, this process included, and no keeper would wake it.
				signal.Ignore(syscall.SIGTTIN, syscall.SIGTTOU)
			}
			return true, nil
		case c.timedOut.Load():
			_ = c.s.Kill() // the time of what is left is over; a keeper has killed it already
		}
	case fork.Emptied:
		c.emptied = true
		c.tellEnded(ev.Killed)
		return true, nil
	}
	return false, nil
}

// tellEnded warns that n processes were ended with the command, if it ended by itself.
func (c *Command) tellEnded(n int) {
	if n > 0 && c.endedItself() {
		if c.reaped {
			c.warn(Warning{Text: "something else ended the session, such as zsbx reap, " +
				"or half of the CPU-time limit (ulimit -t) was used up"})
			return
		}
		what := "1 process"
		if n > 1 {
			what = fmt.Sprintf("%d processes", n)
		}
		c.warn(Warning{Text: "ended " + what + " that the command left running; --keep leaves them"})
	}
}

// timeOver warns that the command is ended because its time is over.
func (c *Command) timeOver() {
	if !c.timedOut.Swap(true) {
		c.warn(Warning{Text: "the command took longer than " + c.timeLimit().what() + ", and is ended"})
	}
}

// ended returns what ended the command, or nil if it ended by itself. lost is why it is
// not known how it ended.
func (c *Command) ended(lost error) error {
	switch {
	case c.timedOut.Load():
		return c.timeLimit()
	case c.canceled.Load():
		return fmt.Errorf("the command was ended: %w", context.Cause(c.ctx))
	case !c.exited.Load():
		return &Error{Code: CodeSession, Err: fmt.Errorf("%w: %w", ErrLost, cmp.Or(lost, fork.ErrKeeperLost))}
	}
	return nil
}

func (c *Command) timeLimit() *LimitError {
	return &LimitError{Limit: limitTime, Time: time.Duration(c.limits.Timeout.Value), From: c.limits.Timeout.From}
}

// stop makes this process stop as the command did, so that the shell that waits for
// it sees a stopped job. It does nothing without a terminal, where nobody would wake this
// process. The time limit goes on, and the end of the session wakes this process.
func (c *Command) stop() {
	if !c.o.Job || !job.IsStopped(c.s.Pid()) || !job.HasTerminal() {
		return
	}
	// A shell inside has its own process group, which gets the terminal back when
	// this process does. The caller's shell may have taken the terminal by now.
	pgrp := job.Foreground()
	if own, err := unix.Getpgid(c.s.Pid()); err != nil || pgrp != own {
		pgrp = 0
	}
	c.relay.Restore()
	stopped := job.StopSelf(func() bool {
		// The terminal may have stopped this process, too. Then its shell has continued
		// both already, and must not have to do so again.
		return c.s.Over() || !job.IsStopped(c.s.Pid())
	})
	if c.s.Over() {
		return
	}
	job.SetForeground(pgrp)
	_ = c.relay.Raw()
	if stopped {
		_ = c.s.Signal(syscall.SIGCONT)
	}
}
