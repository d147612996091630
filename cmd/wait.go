package cmd

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/policy"
)

// running is a command that was started, until it and all that it left behind
// have ended.
type running struct {
	a         *app
	p         *fork.Process
	limits    policy.Limits
	killAfter time.Duration
	keep      bool
	output    *outputLimit // nil without --max-output
	relay     *relay       // nil without --tty

	status   syscall.WaitStatus
	exited   bool
	timedOut bool
	killed   bool // by --max-output
}

// next is what fork.Process.Next gave.
type next struct {
	ev  fork.Event
	err error
}

// wait passes signals on, ends the command when its time is over, and gives
// its exit status. Goroutines and signal handlers are set up here, after the
// command was started: they take longer than starting it.
func (r *running) wait() error {
	defer r.p.Close()
	defer r.relay.end()
	events := make(chan next)
	go func() {
		for {
			ev, err := r.p.Next()
			events <- next{ev, err}
			if err != nil {
				return
			}
		}
	}()
	signals := make(chan os.Signal, 16)
	for _, s := range forwarded() {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	timer := newTimer(r.limits.Timeout)
	for {
		select {
		case n := <-events:
			done, err := r.event(n)
			if done || err != nil {
				return err
			}
		case s := <-signals:
			r.forward(s.(syscall.Signal))
		case <-timer:
			timer = r.timeOut()
		case <-r.output.exceeded():
			r.a.say.warn("the command wrote more than %s (%s), and was ended", formatBytes(r.limits.MaxOutput), r.limits.MaxOutputFrom)
			r.output.limit, r.killed = nil, true
			r.p.Kill()
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
	case n.err != nil:
		return true, &failure{code: codeFailed, status: exitFailed, err: n.err}
	}
	switch n.ev.Kind {
	case fork.Stopped:
		r.stop()
	case fork.Exited:
		r.status, r.exited = n.ev.Status, true
		if r.keep {
			return true, r.result()
		}
	case fork.Emptied:
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
		r.p.Kill()
		return nil
	}
	r.timedOut = true
	r.a.say.warn("the command took longer than %s (%s), and is ended", r.limits.Timeout, r.limits.TimeoutFrom)
	r.p.Signal(syscall.SIGTERM)
	r.p.Signal(syscall.SIGCONT)
	return newTimer(r.killAfter)
}

// forwarded are the signals that are passed on to the command. Those that stop
// and continue are not: the terminal sends them to all of its foreground
// process group, to which the command belongs.
func forwarded() []os.Signal {
	return []os.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
	}
}

// forward passes a signal on. SIGINT and SIGQUIT that come from the keyboard
// have reached the command already: it must not see them twice.
func (r *running) forward(s syscall.Signal) {
	if (s == syscall.SIGINT || s == syscall.SIGQUIT) && inForeground() {
		return
	}
	r.p.Signal(s)
}

// stop makes zsbx stop as the command did, so that the shell that waits for
// zsbx sees a stopped job. Without a terminal nobody would wake it.
func (r *running) stop() {
	if !isStopped(r.p.Pid) || !hasTerminal() {
		return
	}
	r.relay.restore()
	syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	r.relay.raw()
	r.p.Signal(syscall.SIGCONT)
}

// dieBy ends zsbx by the signal that ended the command. A shell that runs zsbx
// in a script goes on after Ctrl-C unless its child died by SIGINT.
func dieBy(s syscall.Signal) {
	signal.Reset(s)
	syscall.Kill(os.Getpid(), s)
	time.Sleep(time.Second) // the signal may take another thread
}
