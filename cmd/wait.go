package cmd

import (
	"errors"
	"io"
	"os"
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
	keep      bool
	inPlace   bool         // the command replaces zsbx
	output    *outputLimit // nil without --max-output
	relay     *relay       // nil without --tty
	signals   <-chan os.Signal

	status   syscall.WaitStatus
	exited   atomic.Bool
	timedOut atomic.Bool
	killed   atomic.Bool       // by --max-output
	mediator *enforce.Mediator // of a session that may be kept
	kept     bool              // something was left running, as --keep asks for
	emptied  bool              // the keeper said that nothing is left
}

// wait follows the command to its end and gives its exit status. It reads the
// events itself: another goroutine's would come a thread switch later each.
func (r *running) wait() error {
	defer r.relay.end()
	if r.signals != nil || r.limits.Timeout > 0 || r.output != nil {
		over := make(chan struct{})
		defer close(over)
		go r.attend(over)
	}
	for {
		ev, err := r.s.Next()
		if done, err := r.event(ev, err); done {
			return err
		}
	}
}

// attend passes signals on and ends the command when its time is over or it
// wrote too much.
func (r *running) attend(over <-chan struct{}) {
	timer, exceeded := newTimer(r.limits.Timeout), r.output.exceeded()
	for {
		select {
		case <-over:
			return
		case s := <-r.signals:
			r.forward(s.(syscall.Signal))
		case <-timer:
			timer = r.timeOut()
		case <-exceeded:
			exceeded = nil
			r.a.say.warn("the command wrote more than %s (%s), and was ended", formatBytes(r.limits.MaxOutput), r.limits.MaxOutputFrom)
			r.killed.Store(true)
			r.s.Kill()
		}
	}
}

// failed tells whether the command ended by itself and without success.
func (r *running) failed() bool {
	return r.exited.Load() && !r.timedOut.Load() && !r.killed.Load() && r.status.Exited() && r.status.ExitStatus() != 0
}

// newTimer is a channel that never delivers for 0.
func newTimer(d time.Duration) <-chan time.Time {
	if d <= 0 {
		return nil
	}
	return time.After(d)
}

// event handles one event; done says that it was the last one.
func (r *running) event(ev fork.Event, err error) (done bool, _ error) {
	switch {
	case errors.Is(err, io.EOF):
		return true, r.result()
	case errors.Is(err, fork.ErrKeeperLost) && r.exited.Load():
		return true, r.result() // what is left is the session's care
	case err != nil:
		return true, &failure{code: codeFailed, status: exitFailed, err: err}
	}
	switch ev.Kind {
	case fork.Stopped:
		r.stop()
	case fork.Exited:
		r.status = ev.Status
		r.exited.Store(true)
		switch {
		case r.keep:
			r.handOver()
			return true, r.result()
		case r.timedOut.Load():
			r.s.Kill() // what is left has had its time
		}
	case fork.Emptied:
		r.emptied = true
		if ev.Killed > 0 && r.exited.Load() && !r.timedOut.Load() && !r.killed.Load() {
			r.a.say.warn("ended %s that the command left running; --keep leaves them", count(ev.Killed, "process", "processes"))
		}
	}
	return false, nil
}

// result is the exit status of zsbx for that of the command.
func (r *running) result() error {
	r.output.drain()
	r.relay.end()
	switch {
	case r.timedOut.Load():
		return status(exitTimeout)
	case !r.exited.Load():
		return &failure{code: codeFailed, status: exitFailed, err: errors.New("the command's exit status was lost")}
	case r.status.Signaled():
		f := &failure{status: exitSignal + int(r.status.Signal())}
		if r.status.Signal() == syscall.SIGINT {
			f.signal = syscall.SIGINT
		}
		return f
	}
	return status(r.status.ExitStatus())
}

// timeOut asks the command to end and gives the timer after which it is
// killed; the second call kills it with all that it started.
func (r *running) timeOut() <-chan time.Time {
	if r.exited.Load() {
		return nil
	}
	if r.timedOut.Load() {
		r.s.Kill()
		return nil
	}
	r.timedOut.Store(true)
	r.a.say.warn("the command took longer than %s (%s), and is ended", r.limits.Timeout, r.limits.TimeoutFrom)
	r.s.Signal(syscall.SIGTERM)
	r.s.Signal(syscall.SIGCONT)
	return newTimer(r.killAfter)
}

// stop makes zsbx stop as the command did, so that the shell that waits for
// zsbx sees a stopped job. Without a terminal nobody would wake it.
func (r *running) stop() {
	if !isStopped(r.s.Pid()) || !hasTerminal() {
		return
	}
	// A shell inside has put itself into a group of its own: it gets the
	// terminal back when zsbx does.
	pgrp := foreground()
	r.relay.restore()
	stopSelf()
	setForeground(pgrp)
	r.relay.raw()
	r.s.Signal(syscall.SIGCONT)
}
