package stdio

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/supervise/internal/job"
	"github.com/zsbx/zsbx/internal/terminal"
)

// session is what a relay needs of the command's session.
type session interface {
	Signal(s syscall.Signal) error
	Over() bool
}

// Relay runs the command on a new pseudo-terminal and copies what is
// typed and what is shown between that and the caller's terminal. The command
// has no descriptor of the caller's terminal, and the new one is the controlling
// terminal of its new session, so that /dev/tty leads to it as well. A nil
// relay does nothing.
type Relay struct {
	master, slave *os.File
	stdin         io.Reader
	terminal      *os.File      // stdin, if that is a terminal
	wake, woken   *os.File      // a pipe, with a terminal: closing wake ends typed
	idle          chan struct{} // closed when typed has ended
	cooked        *unix.Termios // the terminal as it was; nil if it has not been changed
	carrier       *Pump
	resized       chan os.Signal
	s             session
	exited        *atomic.Bool // whether the command has ended
}

// Pump returns the pump that copies the output, or nil.
func (r *Relay) Pump() *Pump {
	if r == nil {
		return nil
	}
	return r.carrier
}

// NewRelay opens a pseudo-terminal (pty(7)) of a size in characters. 0 rows or columns mean
// those of the caller's terminal, or 24 and 80.
func NewRelay(stdin io.Reader, stdout io.Writer, rows, columns uint16) (*Relay, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("opening a pseudo-terminal: %w", err)
	}
	if stdin == nil {
		stdin = strings.NewReader("")
	}
	if stdout == nil {
		stdout = io.Discard
	}
	r := &Relay{master: master, slave: slave, stdin: stdin}
	if f, ok := stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		r.terminal = f
	}
	r.carrier, err = newPump(stdout)
	if err == nil {
		err = r.firstSize(rows, columns)
	}
	if err != nil {
		master.Close()
		slave.Close()
		return nil, err
	}
	return r, nil
}

// firstSize sets the size that the command finds.
func (r *Relay) firstSize(rows, columns uint16) error {
	size := &pty.Winsize{Rows: 24, Cols: 80}
	if r.terminal != nil {
		var err error
		size, err = pty.GetsizeFull(r.terminal)
		if err != nil {
			return fmt.Errorf("reading the size of the terminal: %w", err)
		}
	}
	size.Rows = cmp.Or(rows, size.Rows)
	size.Cols = cmp.Or(columns, size.Cols)
	return r.setSize(size)
}

func (r *Relay) setSize(size *pty.Winsize) error {
	err := r.control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{
			Row:    size.Rows,
			Col:    size.Cols,
			Xpixel: size.X,
			Ypixel: size.Y,
		})
	})
	if err != nil {
		return fmt.Errorf("setting the size of the pseudo-terminal: %w", err)
	}
	return nil
}

// control calls f with the descriptor of the pseudo-terminal. Close waits for f. After Close
// it returns an error, so that f never meets another file under the same number.
func (r *Relay) control(f func(fd int) error) error {
	c, err := r.master.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	err = c.Control(func(fd uintptr) { result = f(int(fd)) })
	return errors.Join(err, result)
}

// Resize changes the size. The foreground processes get SIGWINCH. After Close it is an error.
func (r *Relay) Resize(rows, columns uint16) error {
	return r.setSize(&pty.Winsize{Rows: rows, Cols: columns})
}

// Attach makes the new process a session leader with the pseudo-terminal as its
// controlling terminal.
func (r *Relay) Attach(c *fork.Command) {
	c.Files = []*os.File{r.slave, r.slave, r.slave}
	c.Terminal = true
	if r.terminal == nil {
		return
	}
	if t, err := unix.IoctlGetTermios(int(r.terminal.Fd()), terminal.GetSettings); err == nil {
		c.Restore = &fork.Restore{Terminal: r.terminal, Before: *t, Then: raw(*t)}
	}
}

// raw returns settings with which a terminal passes on every key and shows every byte
// (termios(3), cfmakeraw).
func raw(t unix.Termios) unix.Termios {
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag &^= unix.CSIZE | unix.PARENB
	t.Cflag |= unix.CS8
	t.Cc[unix.VMIN] = 1
	t.Cc[unix.VTIME] = 0
	return t
}

// Begin starts copying, once the command runs. From then on this process stops itself
// while another job has the terminal. The kernel would stop it again each time that the
// keeper wakes it, and it could never end.
func (r *Relay) Begin(s session, exited *atomic.Bool) error {
	if r == nil {
		return nil
	}
	r.slave.Close()
	r.s = s
	r.exited = exited
	if r.terminal != nil {
		signal.Ignore(syscall.SIGTTIN, syscall.SIGTTOU)
	}
	err := r.Raw()
	r.idle = make(chan struct{})
	if r.terminal != nil {
		var none error
		r.woken, r.wake, none = os.Pipe()
		err = errors.Join(err, none)
	}
	go r.show()
	go r.typed()
	if r.cooked != nil {
		r.resized = make(chan os.Signal, 1)
		signal.Notify(r.resized, syscall.SIGWINCH)
		go func() {
			for range r.resized {
				r.follow()
			}
		}()
	}
	return err
}

// follow gives the pseudo-terminal the size of the caller's terminal.
func (r *Relay) follow() {
	size, err := pty.GetsizeFull(r.terminal)
	if err == nil {
		_ = r.setSize(size)
	}
}

// Close closes the pseudo-terminal. Processes that still have it get SIGHUP.
func (r *Relay) Close() {
	if r == nil {
		return
	}
	r.Restore()
	if r.resized != nil {
		signal.Stop(r.resized)
		close(r.resized)
	}
	r.slave.Close()
	r.master.Close()
	if r.wake == nil {
		return
	}
	r.wake.Close()
	select {
	case <-r.idle:
	case <-time.After(DrainTime): // another job has the terminal
	}
}

// show copies the output until no process has the pseudo-terminal open. If the output
// can't be written, the command gets SIGHUP, as from a terminal that was closed. What it
// still writes is thrown away, because a full terminal would block it.
func (r *Relay) show() {
	r.carrier.run(shown{r})
	if r.carrier.Err != nil {
		r.s.Signal(syscall.SIGHUP)
		r.s.Signal(syscall.SIGCONT)
		io.Copy(io.Discard, shown{r})
	}
}

// shown reads what the command shows. Linux returns EIO if no process has the
// pseudo-terminal open. That is the end only if the command has ended: before, it may
// open the terminal again by its name.
type shown struct{ *Relay }

func (s shown) Read(b []byte) (int, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, DrainTime/10) {
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
func (r *Relay) closed() bool {
	idle := false
	err := r.control(func(fd int) error {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, 0)
		idle = n == 1 && p[0].Revents&unix.POLLIN == 0
		return err
	})
	return err == nil && idle
}

// typed copies the input. At its end it writes the end-of-file character (termios(3),
// VEOF), as a terminal does.
func (r *Relay) typed() {
	defer close(r.idle)
	stdin := r.stdin
	if r.woken != nil {
		defer r.woken.Close()
		stdin = keys{r}
	}
	for {
		_, err := io.Copy(r.master, stdin)
		taken := errors.Is(err, syscall.EIO) // another job has the terminal, or had it
		if !taken || r.terminal == nil || !r.awaitForeground() {
			break
		}
	}
	var t *unix.Termios
	err := r.control(func(fd int) (err error) {
		t, err = unix.IoctlGetTermios(fd, terminal.GetSettings)
		return err
	})
	if err == nil && t.Lflag&unix.ICANON != 0 {
		r.master.Write(t.Cc[unix.VEOF : unix.VEOF+1])
	}
}

// keys reads the caller's terminal until the relay is closed. A read(2) that waits could not be ended, and would
// take what is typed after the command, such as an answer to a question.
type keys struct{ *Relay }

func (k keys) Read(b []byte) (int, error) {
	p := []unix.PollFd{
		{Fd: int32(k.terminal.Fd()), Events: unix.POLLIN},
		{Fd: int32(k.woken.Fd()), Events: unix.POLLIN},
	}
	for {
		_, err := unix.Poll(p, -1)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, err
		case p[1].Revents != 0:
			return 0, io.EOF
		default:
			return k.terminal.Read(b)
		}
	}
}

// awaitForeground stops zsbx until no other job has the terminal, or the session is
// over. It reports whether stdin is the controlling terminal.
func (r *Relay) awaitForeground() bool {
	for {
		pgrp, err := unix.IoctlGetInt(int(r.terminal.Fd()), unix.TIOCGPGRP)
		if err != nil || r.s.Over() {
			return false
		}
		if pgrp == unix.Getpgrp() {
			return true
		}
		if !job.StopSelf(r.s.Over) {
			time.Sleep(DrainTime) // nobody could wake it
		}
	}
}

// Raw makes the caller's terminal pass on every key, once this process has it.
func (r *Relay) Raw() error {
	if r == nil || r.terminal == nil {
		return nil
	}
	r.awaitForeground()
	if r.s.Over() {
		return nil
	}
	fd := int(r.terminal.Fd())
	t, err := unix.IoctlGetTermios(fd, terminal.GetSettings)
	if err == nil {
		r.cooked = t
		err = unix.IoctlSetTermios(fd, terminal.SetSettings, new(raw(*t)))
	}
	if err != nil {
		return fmt.Errorf("setting the terminal to raw mode: %w", err)
	}
	return nil
}

// Restore restores the settings of the caller's terminal.
func (r *Relay) Restore() {
	if r != nil && r.cooked != nil {
		_ = unix.IoctlSetTermios(int(r.terminal.Fd()), terminal.SetSettings, r.cooked)
		r.cooked = nil
	}
}
