//go:build linux || darwin

package cmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/zsbx/zsbx/track"
)

// relay runs the command on a pseudo-terminal of its own and carries what is
// typed and what is shown between that and the caller's terminal. The command
// has no descriptor of the caller's terminal, and the new one is the controlling
// terminal of its new session, so that /dev/tty leads to it as well. A nil
// relay does nothing.
type relay struct {
	master, slave *os.File
	stdin         *os.File
	cooked        *term.State // the caller's terminal as it was; nil where stdin is none
	carrier       *pump
	s             *track.Session
	exited        *atomic.Bool // whether the command has ended
}

// pump carries the output.
func (r *relay) pump() *pump {
	if r == nil {
		return nil
	}
	return r.carrier
}

// newRelay opens a pseudo-terminal (pty(7)) of the size of the caller's.
func newRelay(stdin, stdout *os.File) (*relay, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("opening a pseudo-terminal: %w", err)
	}
	r := &relay{master: master, slave: slave, stdin: stdin}
	if r.carrier, err = newPump(stdout); err == nil && isTerminal(stdin) {
		if err = pty.InheritSize(stdin, master); err != nil {
			err = fmt.Errorf("setting the size of the pseudo-terminal: %w", err)
		}
	}
	if err != nil {
		master.Close()
		slave.Close()
		return nil, err
	}
	return r, nil
}

// begin starts copying, once the command runs. zsbx stops by itself where another
// job has the terminal: the kernel would stop it again whenever the keeper has
// woken it, and it could not end.
func (r *relay) begin(s *track.Session, exited *atomic.Bool) error {
	if r == nil {
		return nil
	}
	r.slave.Close()
	r.s, r.exited = s, exited
	signal.Ignore(syscall.SIGTTIN, syscall.SIGTTOU)
	err := r.raw()
	go r.show()
	go r.typed()
	if r.cooked != nil {
		resized := make(chan os.Signal, 1)
		signal.Notify(resized, syscall.SIGWINCH)
		go func() {
			for range resized {
				pty.InheritSize(r.stdin, r.master)
			}
		}()
	}
	return err
}

// show copies the output until no process has the pseudo-terminal open. When it
// can't be written, the command is told as by a terminal that was closed, and what
// it writes all the same is thrown away: a full terminal would block it.
func (r *relay) show() {
	r.carrier.run(shown{r})
	if r.carrier.err != nil {
		r.s.Signal(syscall.SIGHUP)
		r.s.Signal(syscall.SIGCONT)
		io.Copy(io.Discard, shown{r})
	}
}

// shown is what the command shows. Linux says EIO where no process has the
// pseudo-terminal open: that is the end only once the command has ended, which may
// open it again by its name.
type shown struct{ *relay }

func (s shown) Read(b []byte) (int, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, drainTime/10) {
		ended := s.exited.Load()
		n, err := s.master.Read(b)
		if n > 0 || !errors.Is(err, syscall.EIO) {
			return n, err
		}
		if ended && s.closed() {
			return 0, io.EOF
		}
		time.Sleep(pause)
	}
}

// closed reports whether no process has the pseudo-terminal open, and nothing is
// left to be shown.
func (r *relay) closed() bool {
	p := []unix.PollFd{{Fd: int32(r.master.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(p, 0)
	return err == nil && n == 1 && p[0].Revents&unix.POLLIN == 0
}

// typed copies the input. Its end is told as a terminal tells it: by the
// end-of-file character (termios(3), VEOF).
func (r *relay) typed() {
	for {
		// EIO: another job has the terminal, or had it.
		if _, err := io.Copy(r.master, r.stdin); !errors.Is(err, syscall.EIO) || !r.awaitForeground() {
			break
		}
	}
	if t, err := unix.IoctlGetTermios(int(r.master.Fd()), getTermios); err == nil && t.Lflag&unix.ICANON != 0 {
		r.master.Write(t.Cc[unix.VEOF : unix.VEOF+1])
	}
}

// awaitForeground stops zsbx until no other job has the terminal, or the session is
// over. It reports whether stdin is the controlling terminal.
func (r *relay) awaitForeground() bool {
	for {
		pgrp, err := unix.IoctlGetInt(int(r.stdin.Fd()), unix.TIOCGPGRP)
		if err != nil || r.s.Over() {
			return false
		}
		if pgrp == unix.Getpgrp() {
			return true
		}
		if !stopSelf(r.s.Over) {
			time.Sleep(drainTime) // nobody could wake it
		}
	}
}

// raw makes the caller's terminal pass every key on, when zsbx has it.
func (r *relay) raw() error {
	if r == nil || !isTerminal(r.stdin) {
		return nil
	}
	r.awaitForeground()
	if r.s.Over() {
		return nil
	}
	var err error
	if r.cooked, err = term.MakeRaw(int(r.stdin.Fd())); err != nil {
		return fmt.Errorf("setting the terminal to raw mode: %w", err)
	}
	return nil
}

// restore puts the caller's terminal back.
func (r *relay) restore() {
	if r != nil && r.cooked != nil {
		term.Restore(int(r.stdin.Fd()), r.cooked)
		r.cooked = nil
	}
}
