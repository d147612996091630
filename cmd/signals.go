package cmd

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// ignoreKeyboard makes zsbx ignore what the keyboard sends to the whole
// foreground process group (termios(3), ISIG), from before the command is
// started: it must not die of a signal that the command handles. Handlers,
// which take longer to set up, come afterwards. It returns the signals that
// were not ignored before, and that the command is to have with their default
// action.
func ignoreKeyboard() []syscall.Signal {
	var own []syscall.Signal
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT} {
		if !signal.Ignored(s) {
			signal.Ignore(s)
			own = append(own, s)
		}
	}
	return own
}

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
// zsbx's caller had it ignore. It is called while the new process is on its
// way to exec, which takes about as long.
func (r *running) listen() <-chan os.Signal {
	signals := make(chan os.Signal, 16)
	for _, s := range forwarded() {
		if slices.Contains(r.keyboard, s) || !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	return signals
}

// forward passes a signal on. SIGINT and SIGQUIT that come from the keyboard
// have reached the command already: it must not see them twice.
func (r *running) forward(s syscall.Signal) {
	if (s == syscall.SIGINT || s == syscall.SIGQUIT) && inForeground() {
		return
	}
	r.s.Signal(s)
}

// dieBy ends zsbx by the signal that ended the command. A shell that runs zsbx
// in a script goes on after Ctrl-C unless its child died by SIGINT.
func dieBy(s syscall.Signal) {
	signal.Reset(s)
	syscall.Kill(os.Getpid(), s)
	time.Sleep(time.Second) // the signal may take another thread
}
