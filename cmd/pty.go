//go:build linux || darwin

package cmd

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// relay runs the command on a pseudo-terminal of its own and carries what is
// typed and what is shown between that and the caller's terminal. The command
// has no descriptor of the caller's terminal, and the new one is the controlling
// terminal of its new session, so that /dev/tty leads to it as well. A nil
// relay does nothing.
type relay struct {
	master, slave *os.File
	stdin, stdout *os.File
	cooked        *term.State   // the caller's terminal as it was; nil where stdin is none
	shown         chan struct{} // closed when all output was copied
}

// newRelay opens a pseudo-terminal (pty(7)) of the size of the caller's.
func newRelay(stdin, stdout *os.File) (*relay, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("opening a pseudo-terminal: %w", err)
	}
	r := &relay{master: master, slave: slave, stdin: stdin, stdout: stdout, shown: make(chan struct{})}
	if isTerminal(stdin) {
		if err := pty.InheritSize(stdin, master); err != nil {
			master.Close()
			slave.Close()
			return nil, fmt.Errorf("setting the size of the pseudo-terminal: %w", err)
		}
	}
	return r, nil
}

// begin starts copying, once the command runs.
func (r *relay) begin() error {
	if r == nil {
		return nil
	}
	r.slave.Close()
	if err := r.raw(); err != nil {
		return err
	}
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
	return nil
}

// show copies the output until no process has the pseudo-terminal open.
func (r *relay) show() {
	defer close(r.shown)
	io.Copy(r.stdout, r.master)
}

// typed copies the input. Its end is told as a terminal tells it: by the
// end-of-file character (termios(3), VEOF).
func (r *relay) typed() {
	io.Copy(r.master, r.stdin)
	if t, err := unix.IoctlGetTermios(int(r.master.Fd()), getTermios); err == nil && t.Lflag&unix.ICANON != 0 {
		r.master.Write(t.Cc[unix.VEOF : unix.VEOF+1])
	}
}

// raw makes the caller's terminal pass every key on.
func (r *relay) raw() error {
	if r == nil || !isTerminal(r.stdin) {
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

// drainTime is how long output may still come after the command ended, while
// what it left running keeps the pseudo-terminal open.
const drainTime = 200 * time.Millisecond

// end waits for the last output and puts the caller's terminal back.
func (r *relay) end() {
	if r == nil {
		return
	}
	select {
	case <-r.shown:
	case <-time.After(drainTime):
	}
	r.restore()
}
