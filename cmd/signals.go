package cmd

import (
	"os"
	"os/signal"
	"syscall"
	"time"
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
// zsbx's caller had it ignore, where package fork can't pass them on by itself.
// It is called before the command is started: zsbx must not die of a signal
// that the command handles.
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

// deaf ends that: a signal that comes now is for zsbx, which has little left to do.
func (r *running) deaf() {
	if r.signals == nil {
		return
	}
	for _, s := range forwarded() {
		signal.Reset(s)
	}
}

// forward passes a signal on. SIGINT and SIGQUIT that come from the keyboard
// have reached the command already: it must not see them twice.
func (r *running) forward(s syscall.Signal) {
	if (s == syscall.SIGINT || s == syscall.SIGQUIT) && inForeground() {
		return
	}
	r.passed.Store(int32(s))
	r.s.Signal(s)
}

// dieBy ends zsbx by the signal that ended the command. A shell that runs zsbx
// in a script goes on after Ctrl-C unless its child died by SIGINT.
func dieBy(s os.Signal) {
	signal.Reset(s)
	syscall.Kill(os.Getpid(), s.(syscall.Signal))
	time.Sleep(time.Second) // the signal may take another thread
}
