package sandbox

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/zsbx/zsbx/enforce/sandbox/internal/job"
)

// forwarded are the signals that are passed on to the command. Those that stop
// and continue are not: the terminal sends them to all of its foreground
// process group, to which the command belongs.
func forwarded() []syscall.Signal {
	return []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
	}
}

// listen starts to receive the signals to be passed on, but for those that
// this process's caller had it ignore, where package fork can't pass them on by
// itself. It is called before the command is started: this process must not die of
// a signal that the command handles.
func listen() <-chan os.Signal {
	signals := make(chan os.Signal, 16)
	var wanted []os.Signal
	for _, s := range forwarded() {
		if !signal.Ignored(s) {
			wanted = append(wanted, s)
		}
	}
	if len(wanted) > 0 { // without any, Notify would take all
		signal.Notify(signals, wanted...)
	}
	return signals
}

// deaf ends that: a signal that comes now is for this process, which has little left
// to do. In the background that waits for Leave: the front passes signals on that
// both have got, and one may come late.
func (c *Command) deaf() {
	if c.signals != nil && !InBackground() {
		reset()
	}
}

// reset has the signals that were passed on do what they do by default.
func reset() {
	for _, s := range forwarded() {
		signal.Reset(s)
	}
}

// forward passes a signal on. SIGINT and SIGQUIT that come from the keyboard
// have reached the command already: it must not see them twice.
func (c *Command) forward(s syscall.Signal) {
	if (s == syscall.SIGINT || s == syscall.SIGQUIT) && job.InForeground() {
		return
	}
	c.passed.Store(int32(s))
	_ = c.s.Signal(s)
}
