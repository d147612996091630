package seatbelt

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/zsbx/zsbx/enforce/fingerprint"
	"github.com/zsbx/zsbx/policy"
)

// base is how every profile begins: processes among themselves, services, terminals,
// and what the loader and the shell read before main runs. It does not depend on the
// policy.
//
//go:embed base.sb
var base string

// Options are what a Seatbelt profile needs beside the policy.
type Options struct {
	// Session is the session's UUID in lower case. The profile carries it
	// as a fingerprint, by which every process under the profile can be
	// told from all others. "" leaves the fingerprint out, for reading;
	// Plan.Confine then makes one up, to prove the profile by.
	Session string

	// Terminal is the terminal of the command, "/dev/ttys003"; "" for
	// none. No other terminal device can be opened.
	Terminal string

	// Protect are absolute paths that the command may never write,
	// whatever the policy says: policy files, session records. They stay
	// readable where the policy says so.
	Protect []string

	// Unmade are those of Protect that do not exist. They can't be made, in no spelling.
	Unmade []string

	// Held are paths that the policy's globs name. Moved with the directory that it lies
	// in, a file would have another name than the glob's.
	Held []string

	// Deny are denied beside what the policy denies.
	Deny []policy.DenyPath

	// Hide are absolute paths that the command may not read either.
	Hide []string

	// Log has the kernel put Tag(Session) into what it logs of a refusal. It takes
	// a session.
	Log bool

	// External has macOS's own sandbox-exec(1) put the profile on, instead
	// of this program executed again; see fork.Sandbox.
	External bool
}

// IsTerminal reports whether a path is a terminal as macOS names them: /dev/ttys
// and up to six digits.
func IsTerminal(name string) bool {
	digits, ok := strings.CutPrefix(name, "/dev/ttys")
	return ok && digits != "" && len(digits) <= 6 && strings.Trim(digits, "0123456789") == ""
}

// Profile writes the policy as a profile of Seatbelt, macOS's sandbox:
// the text that sandbox_init(3) and sandbox-exec(1) take. It is the same on
// every system and looks at no file; r must have been resolved for "macos".
// Every rule carries its origin as a comment. A rule that cannot be written
// down is a *ProfileError.
//
// Which rule decides is not simply the last one. The compiler asks the
// filtered rules of the very operation, the newest first; then the operation's
// rule without filter; and only then the wildcard above it, in the same way. So
// "(deny file-read* X)" at the end of a profile does not hold against an earlier
// "(allow file-read-data X)", and each denial here names all leaves.
func Profile(r *policy.Resolved, o Options) (string, error) {
	if err := o.check(r); err != nil {
		return "", err
	}
	w := &sbpl{roots: writableRoots(r), pinned: map[string]bool{}, whole: map[string]bool{}}
	if o.Log && o.Session != "" {
		w.message = `(with message "` + Tag(o.Session) + `")`
		xpc := `(xpc-service-name-prefix "")`
		w.b.WriteString(strings.NewReplacer("(deny default)", "(deny default "+w.message+")", xpc, xpc+" "+w.message).Replace(base))
	} else {
		w.b.WriteString(base)
	}
	w.devices(o)
	w.lookups(r)
	w.paths(r)
	w.network(r)
	w.escapes(r)
	w.sockets(r)
	w.denials(r, o)
	w.protected(o)
	w.fingerprint(o.Session)
	if w.err != nil {
		return "", w.err
	}
	return w.b.String(), nil
}

// Tag is the message of a session's rules, with Options.Log.
func Tag(session string) string { return "zsbx-" + session }

// check refuses options that would end up in the profile unseen.
func (o Options) check(r *policy.Resolved) error {
	switch {
	case r == nil:
		return errors.New("writing a seatbelt profile: no policy")
	case r.OS != "macos":
		return fmt.Errorf("writing a seatbelt profile: the policy was resolved for %q", r.OS)
	case o.Session != "" && !fingerprint.Valid(o.Session):
		return fmt.Errorf("writing a seatbelt profile: session %q is not a UUID in lower case", o.Session)
	case o.Terminal != "" && !IsTerminal(o.Terminal):
		return fmt.Errorf("writing a seatbelt profile: terminal %q is not a /dev/ttysNNN", o.Terminal)
	}
	return nil
}

// devices: the command's own terminal.
func (w *sbpl) devices(o Options) {
	if o.Terminal != "" {
		w.section("the command's terminal")
		w.allow([]string{"file-read*", "file-write-data", "file-ioctl"}, "zsbx", `(literal "`+o.Terminal+`")`)
	}
}
