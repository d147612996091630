package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/terminal"
)

// The rules of the voice. stdout belongs to the command, and to the data that
// a command was asked for. All else goes to stderr as
//
//	zsbx: error: what could not be done, and to what
//	zsbx: warning: what may not be as the user expects
//	zsbx: refused: a connection to a host that is not allowed
//	zsbx: failed: a connection that is allowed and that could not be made
//	zsbx: hint: something to type as it stands: a command line, or flags
//
// in lower case and without a full stop. With --json errors are one JSON
// object on stderr, with a code that stays the same from release to release.

// voice says things to the user.
type voice struct {
	w     io.Writer
	json  bool
	color bool
	lost  atomic.Bool // something could not be written
}

func (v *voice) warn(format string, args ...any) {
	v.line("warning", "33", fmt.Sprintf(format, args...))
}

// refused writes a line about a connection to a host outside.
func (v *voice) refused(line string, failed bool) {
	kind := "refused"
	if failed {
		kind = "failed"
	}
	v.line(kind, "33", line)
}

// hint writes a line for each line of a hint, which may have several things to type. All
// that is not zsbx's own in it is quoted for a shell, and so has no line breaks.
func (v *voice) hint(format string, args ...any) {
	for l := range strings.SplitSeq(strings.TrimRight(fmt.Sprintf(format, args...), "\n"), "\n") {
		v.line("hint", "36", l)
	}
}

// hints writes several hints, each once if it comes several times in a row.
func (v *voice) hints(all []string) {
	for _, h := range slices.Compact(slices.DeleteFunc(all, func(h string) bool { return h == "" })) {
		v.hint("%s", h)
	}
}

// line writes one line, whatever is in msg: a line break in a name must not begin another
// message of zsbx.
func (v *voice) line(kind, color, msg string) {
	if v.color {
		kind = "\x1b[" + color + "m" + kind + "\x1b[0m"
	}
	_, err := io.WriteString(v.w, "zsbx: "+kind+": "+terminal.Printable(strings.TrimRight(msg, "\n"))+"\n")
	if err != nil {
		v.lost.Store(true)
	}
}

// unsaid reports whether something that v had to say could not be written.
func (v *voice) unsaid() bool { return v.lost.Load() }

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// report prints err and returns the outcome that zsbx ends with, that of the first error.
func (v *voice) report(err error) (out supervise.Outcome) {
	if all := leaves(err); all != nil {
		out = outcome(all[0])
	}
	errs := problems(err)
	if v.json && errs != nil {
		writeJSON(v.w, map[string]any{"errors": errs}, "")
		return out
	}
	for _, e := range errs {
		v.line("error", "31", e.Message)
	}
	v.hints(each(errs, func(e problem) string { return e.Hint }))
	return out
}

// wordTime is how long zsbx tries to write one message, if it is to run a command.
const wordTime = time.Second

// patient gives up a write after wordTime, and what follows until that write is done: the
// terminal may be stopped, or nobody may read the pipe.
type patient struct {
	w       io.Writer
	mu      sync.Mutex
	ran     bool       // see started
	writing chan error // what the write that is not done will return, or nil
	lost    error      // why something was not said
}

// started says that the command runs. From now on SIGTTOU is ignored, so that zsbx is not stopped
// for writing while another job has the terminal. The command must not inherit that.
func (p *patient) started() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ran = true
}

func (p *patient) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ran {
		signal.Ignore(syscall.SIGTTOU)
	}
	if !p.done(wordTime / 100) {
		return 0, p.giveUp()
	}
	said := make(chan error, 1)
	words := append([]byte(nil), b...)
	go func() { said <- writeAll(p.w, words) }()
	p.writing = said
	const parts = 10 // while zsbx is stopped, only one of them passes
	for range parts {
		if p.done(wordTime / parts) {
			return len(b), p.lost
		}
	}
	return 0, p.giveUp()
}

// done waits until nothing is being written any more, for at most d.
func (p *patient) done(d time.Duration) bool {
	if p.writing == nil {
		return true
	}
	select {
	case err := <-p.writing:
		p.writing = nil
		p.lost = cmp.Or(p.lost, err)
		return true
	case <-time.After(d):
		return false
	}
}

func (p *patient) giveUp() error {
	p.lost = cmp.Or(p.lost, os.ErrDeadlineExceeded)
	return p.lost
}

// writeAll waits for the reader even if the command, which shares the open file, has set
// O_NONBLOCK.
func writeAll(w io.Writer, b []byte) error {
	for end := time.Now().Add(wordTime); ; time.Sleep(wordTime / 100) {
		n, err := w.Write(b)
		b = b[n:]
		if !errors.Is(err, syscall.EAGAIN) || time.Now().After(end) {
			return err
		}
	}
}

// unsaid returns an error if something was not said. The command shares standard error, and
// can make it fail, so that nobody learns what it changed.
func (p *patient) unsaid() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost == nil {
		return nil
	}
	return refusal(codeOutput, "", "what zsbx had to say could not be written: %w", p.lost)
}
