package enforce

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/policy"
)

// confine writes the profile for the command's terminal and session.
func (p *Plan) confine(c *fork.Command) error {
	if p.Seatbelt == nil {
		return fmt.Errorf("confining the command: %w", errors.ErrUnsupported)
	}
	o := *p.Seatbelt
	markers := o.Session != ""
	if !markers {
		// The fingerprint is what the helper proves the profile by.
		o.Session = uuid.NewString()
	}
	if o.Terminal == "" {
		o.Terminal = terminalOf(c)
	}
	text, err := SeatbeltProfile(p.Policy, o)
	if err != nil {
		return err
	}
	c.Sandbox = &fork.Sandbox{Profile: text, Session: o.Session, Markers: markers, External: o.External}
	return nil
}

// terminalOf is the terminal that the command has as one of its standard
// files, "" for none.
func terminalOf(c *fork.Command) string {
	for i, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if i < len(c.Files) && c.Files[i] != nil {
			f = c.Files[i]
		}
		if t := terminalName(f); isTerminal(t) {
			return t
		}
	}
	return ""
}

// terminalName is the path of a terminal, "" if f is none. fcntl(2), F_GETPATH,
// fills in at most MAXPATHLEN bytes.
func terminalName(f *os.File) string {
	if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TIOCGETA); err != nil {
		return ""
	}
	buf := make([]byte, unix.PathMax)
	if _, err := unix.FcntlInt(f.Fd(), unix.F_GETPATH, int(uintptr(unsafe.Pointer(&buf[0])))); err != nil {
		return ""
	}
	path, _, _ := bytes.Cut(buf, []byte{0})
	return string(path)
}

// confineMediated needs no mediator: the profile judges sockets itself.
func (p *Plan) confineMediated(c *fork.Command) (*Mediator, error) { return nil, p.confine(c) }

func trackOnly(c *fork.Command, session string) error {
	r := &policy.Resolved{OS: "macos", Net: policy.ResolvedNet{Mode: policy.NetOpen}}
	if home, err := os.UserHomeDir(); err == nil {
		r.Home = home
	}
	text, err := SeatbeltProfile(r, SeatbeltOptions{Session: session, TrackOnly: true})
	if err != nil {
		return err
	}
	c.Sandbox = &fork.Sandbox{Profile: text, Session: session, Markers: true}
	return nil
}
