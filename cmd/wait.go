package cmd

import (
	"errors"
	"io"
	"os"
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
	output    *outputLimit // nil without --max-output
	relay     *relay       // nil without --tty
	keyboard  []syscall.Signal
	signals   <-chan os.Signal

	status   syscall.WaitStatus
	exited   bool
	timedOut bool
	killed   bool              // by --max-output
	mediator *enforce.Mediator // of a session that may be kept
	kept     bool              // something was left running, as --keep asks for
	emptied  bool              // the keeper said that nothing is left
}

// next is what fork.Process.Next gave.
type next struct {
	ev  fork.Event
	err error
}

// wait passes signals on, ends the command when its time is over, and gives
// its exit status.
func (r *running) wait() error {
	defer r.relay.end()
	events := make(chan next)
	go func() {
		for {
			ev, err := r.s.Next()
			events <- next{ev, err}
			if err != nil {
				return
			}
		}
	}()
	timer := newTimer(r.limits.Timeout)
	for {
		select {
		case n := <-events:
			done, err := r.event(n)
			if done || err != nil {
				return err
			}
		case s := <-r.signals:
			r.forward(s.(syscall.Signal))
		case <-timer:
			timer = r.timeOut()
		case <-r.output.exceeded():
			r.a.say.warn("the command wrote more than %s (%s), and was ended", formatBytes(r.limits.MaxOutput), r.limits.MaxOutputFrom)
			r.output.limit, r.killed = nil, true
			r.s.Kill()
		}
	}
}

// failed tells whether the command ended by itself and without success.
func (r *running) failed() bool {
	return r.exited && !r.timedOut && !r.killed && r.status.Exited() && r.status.ExitStatus() != 0
}

// newTimer is a channel that never delivers for 0.
func newTimer(d time.Duration) <-chan time.Time {
	if d <= 0 {
		return nil
	}
	return time.After(d)
}

// event handles one event; done says that it was the last one.
func (r *running) event(n next) (done bool, err error) {
	switch {
	case errors.Is(n.err, io.EOF):
		return true, r.result()
	case errors.Is(n.err, fork.ErrKeeperLost) && r.exited:
		return true, r.result() // what is left is the session's care
	case n.err != nil:
		return true, &failure{code: codeFailed, status: exitFailed, err: n.err}
	}
	switch n.ev.Kind {
	case fork.Stopped:
		r.stop()
	case fork.Exited:
		r.status, r.exited = n.ev.Status, true
		if r.keep {
			r.handOver()
			return true, r.result()
		}
	case fork.Emptied:
		r.emptied = true
		if n.ev.Killed > 0 && r.exited && !r.timedOut && !r.killed {
			r.a.say.warn("ended %s that the command left running; --keep leaves them", count(n.ev.Killed, "process", "processes"))
		}
	}
	return false, nil
}

// result is the exit status of zsbx for that of the command.
func (r *running) result() error {
	r.output.drain()
	r.relay.end()
	switch {
	case r.timedOut:
		return status(exitTimeout)
	case !r.exited:
		return &failure{code: codeFailed, status: exitFailed, err: errors.New("the command's exit status was lost")}
	case r.status.Signaled():
		if s := r.status.Signal(); s == syscall.SIGINT {
			dieBy(s)
		}
		return status(exitSignal + int(r.status.Signal()))
	}
	return status(r.status.ExitStatus())
}

// timeOut asks the command to end and gives the timer after which it is
// killed; the second call kills it with all that it started.
func (r *running) timeOut() <-chan time.Time {
	if r.timedOut {
		r.s.Kill()
		return nil
	}
	r.timedOut = true
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
