package enforce

import (
	"errors"
	"fmt"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce/broker"
	"github.com/zsbx/zsbx/internal/enforce/seatbelt"
	"github.com/zsbx/zsbx/internal/enforce/trace"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/libsystem"
)

// confine writes the profile for the command's terminal and session. It needs no broker, since
// the profile checks sockets.
func (p *Plan) confine(c *fork.Command) (*broker.Broker, error) {
	if p.Seatbelt == nil {
		return nil, fmt.Errorf("confining the command: %w", errors.ErrUnsupported)
	}
	o := *p.Seatbelt
	if o.Session == "" { // the helper needs a fingerprint to test the profile with
		o.Session = uuid.NewString()
	}
	if o.Terminal == "" {
		o.Terminal = terminalOf(c)
	}
	text, err := seatbelt.Profile(p.Policy, o)
	if err != nil {
		return nil, err
	}
	if o.Log {
		l := trace.NewLog(o.Session, seatbelt.Tag(o.Session))
		if err := l.Start("/usr/bin/log"); err != nil {
			return nil, fmt.Errorf("can't record what the command is refused: %w", err)
		}
		p.recorder = l
	}
	c.Sandbox = &fork.Sandbox{Profile: text, Session: o.Session, External: o.External}
	return nil, nil
}

// terminalOf returns the terminal among the command's standard files, or "".
func terminalOf(c *fork.Command) string {
	for i := range 3 {
		if t := terminalName(fork.StandardFile(c.Files, i)); seatbelt.IsTerminal(t) {
			return t
		}
	}
	return ""
}

// terminalName returns the path of a terminal, or "" if fd is none.
func terminalName(fd int) string {
	if _, err := unix.IoctlGetTermios(fd, unix.TIOCGETA); err != nil {
		return ""
	}
	path, err := libsystem.PathOf(fd)
	if err != nil {
		return ""
	}
	return path
}

// ExplainStart returns the error as it is, since there are no steps.
func ExplainStart(err error) error { return err }
