package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/track"
)

// running is a command that was started, until it and all that it left behind
// have ended.
type running struct {
	a         *app
	s         *track.Session
	limits    policy.Limits
	killAfter time.Duration
	began     time.Time
	keep      bool
	output    *outputLimit // nil without --max-output
	relay     *relay       // nil without --tty
	signals   <-chan os.Signal

	status   syscall.WaitStatus
	exited   atomic.Bool
	timedOut atomic.Bool
	killed   atomic.Bool       // by --max-output
	mediator *enforce.Mediator // of a session that may be kept
	passed   atomic.Int32      // the last signal that forward passed on
	kept     bool              // something was left running, as --keep asks for
	emptied  bool              // the keeper said that nothing is left
}

// wait follows the command to its end and gives its exit status. It reads the
// events itself: another goroutine's would come a thread switch later each. The
// time limit is the keeper's care: see fork.Limit.
func (r *running) wait() error {
	defer r.relay.restore()
	var over chan struct{}
	if r.signals != nil || r.output != nil {
		over = make(chan struct{})
		go r.attend(over)
	}
	var lost error
	for done := false; !done; {
		done, lost = r.event(r.s.Next())
	}
	if over != nil {
		over <- struct{}{}
	}
	return r.result(lost)
}

// attend passes signals on and ends the command when it wrote too much. It says
// nothing, and so never waits for a reader.
func (r *running) attend(over <-chan struct{}) {
	exceeded := r.output.exceeded()
	for {
		select {
		case <-over:
			return
		case s := <-r.signals:
			r.forward(s.(syscall.Signal))
		case <-exceeded:
			exceeded = nil
			r.killed.Store(true)
			r.s.Kill()
		}
	}
}

// failed reports whether the command ended by itself and without success.
func (r *running) failed() bool {
	return r.exited.Load() && !r.timedOut.Load() && !r.killed.Load() && r.status.Exited() && r.status.ExitStatus() != 0
}

// event handles one event; done says that it was the last one, and the error that
// it is not known how the command ended.
func (r *running) event(ev fork.Event, err error) (done bool, _ error) {
	switch {
	case errors.Is(err, io.EOF), err != nil && r.exited.Load():
		return true, nil // what is left is the session's care
	case errors.Is(err, os.ErrDeadlineExceeded):
		r.timeOver()
		return true, nil
	case err != nil:
		return true, err
	}
	switch ev.Kind {
	case fork.Stopped:
		r.stop()
	case fork.TimedOut:
		r.timeOver()
	case fork.Exited:
		r.status = ev.Status
		r.exited.Store(true)
		switch {
		case r.keep:
			// What goes on may want the terminal that zsbx's job has not, and is stopped
			// for it with its process group: no keeper would wake zsbx at the end.
			signal.Ignore(syscall.SIGTTIN, syscall.SIGTTOU)
			r.handOver()
			return true, nil
		case r.timedOut.Load():
			r.s.Kill() // what is left has had its time; a keeper has done so
		}
	case fork.Emptied:
		r.emptied = true
		r.tellEnded(ev.Killed)
	}
	return false, nil
}

// tellEnded says how many processes were ended with the command, which ended by
// itself.
func (r *running) tellEnded(n int) {
	if n > 0 && r.exited.Load() && !r.timedOut.Load() && !r.killed.Load() {
		r.a.say.warn("ended %s that the command left running; --keep leaves them", count(n, "process", "processes"))
	}
}

// timeOver tells that the keeper ends the command for its time.
func (r *running) timeOver() {
	if !r.timedOut.Swap(true) {
		r.a.say.warn("the command took longer than %s (%s), and is ended", r.limits.Timeout, r.limits.TimeoutFrom)
	}
}

// result is the exit status of zsbx for that of the command, and what became of
// its output. lost is why it is not known how the command ended.
func (r *running) result(lost error) error {
	if r.killed.Load() {
		r.a.say.warn("the command wrote more than %s (%s), and was ended", formatBytes(r.limits.MaxOutput), r.limits.MaxOutputFrom)
	}
	return errors.Join(r.exitStatus(lost), r.lastOutput())
}

func (r *running) exitStatus(lost error) error {
	switch {
	case r.timedOut.Load():
		return status(exitTimeout)
	case !r.exited.Load():
		return &failure{code: codeSession, status: exitLost, err: fmt.Errorf("how the command ended is not known: %w", cmp.Or(lost, fork.ErrKeeperLost))}
	case r.status.Signaled():
		f := &failure{status: exitSignal + int(r.status.Signal())}
		if r.status.Signal() == syscall.SIGINT {
			f.signal = syscall.SIGINT
		}
		return f
	}
	return status(r.status.ExitStatus())
}

// stop makes zsbx stop as the command did, so that the shell that waits for
// zsbx sees a stopped job. Without a terminal nobody would wake it. The time limit
// goes on, and the end of the session wakes zsbx.
func (r *running) stop() {
	if !isStopped(r.s.Pid()) || !hasTerminal() {
		return
	}
	// A shell inside has put itself into a group of its own: it gets the
	// terminal back when zsbx does.
	pgrp := foreground()
	r.relay.restore()
	stopped := stopSelf(r.s.Over)
	if r.s.Over() {
		return
	}
	setForeground(pgrp)
	r.relay.raw()
	if stopped {
		r.s.Signal(syscall.SIGCONT)
	}
}
