package seatbelt

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/zsbx/zsbx/internal/fingerprint"
	"github.com/zsbx/zsbx/internal/resolve"
)

// base begins every profile, whatever the policy: rules for processes, services and terminals,
// and for what the loader and the shell read before main runs.
//
//go:embed base.sb
var base string

// Options has what a Seatbelt profile needs besides the policy.
type Options struct {
	// Session is the session's UUID in lower case. The profile has it as a fingerprint, by
	// which processes under the profile can be recognized. "" leaves the fingerprint out, for a
	// profile that is only read. Plan.Confine invents a session for it, to test the profile.
	Session string

	// Terminal is the command's terminal, such as "/dev/ttys003", or "". No other terminal
	// device can be opened.
	Terminal string

	// Protect are absolute paths that the command may never write, whatever the policy says,
	// such as policy files and session records. The policy decides whether they can be read.
	Protect []string

	// Unmade are those of Protect that do not exist. They can't be made, in any spelling.
	Unmade []string

	// Matched are paths that match the policy's globs. The directories above them can't be
	// moved, or the globs would no longer match.
	Matched []string

	// Deny are denials in addition to the policy's.
	Deny []resolve.DenyPath

	// Hide are absolute paths that the command may not read either.
	Hide []string

	// Proxy is the port on localhost of zsbx's proxy, the only way out of a network that is limited to
	// hosts. 0 leaves the network closed.
	Proxy uint16

	// Log makes the kernel put Tag(Session) into its log of a refusal. It needs a session.
	Log bool

	// External makes macOS's sandbox-exec(1) apply the profile, instead of this program
	// executed again; see fork.Sandbox.
	External bool
}

// IsTerminal reports whether a path is a terminal's on macOS: /dev/ttys and up to six digits.
func IsTerminal(name string) bool {
	digits, ok := strings.CutPrefix(name, "/dev/ttys")
	return ok && digits != "" && len(digits) <= 6 && strings.Trim(digits, "0123456789") == ""
}

// Profile returns the policy as a profile for Seatbelt, macOS's sandbox: text for
// sandbox_init(3) and sandbox-exec(1). It is the same on every system and reads no files. r
// must be resolved for "macos". Every rule has its origin as a comment. A rule that can't be
// written causes a *ProfileError.
//
// The last matching rule does not always decide. Seatbelt first asks the filtered rules for
// exactly this operation, the newest first, then the operation's rule without a filter. Only
// then it asks the wildcard above, in the same way. So "(deny file-read* X)" at the end does
// not override an earlier "(allow file-read-data X)". Therefore each denial here names all
// leaves.
func Profile(r *resolve.Resolved, o Options) (string, error) {
	if err := o.check(r); err != nil {
		return "", err
	}
	w := &sbpl{roots: writableRoots(r), pinned: map[string]bool{}, whole: map[string]bool{}}
	if o.Log && o.Session != "" {
		w.message = `(with message "` + Tag(o.Session) + `")`
		xpc := `(xpc-service-name-prefix "")`
		tagged := strings.NewReplacer("(deny default)", "(deny default "+w.message+")", xpc, xpc+" "+w.message)
		w.b.WriteString(tagged.Replace(base))
	} else {
		w.b.WriteString(base)
	}
	w.devices(o)
	w.lookups(r)
	w.paths(r)
	w.network(r, o.Proxy)
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

// Tag returns the message of a session's rules, for Options.Log.
func Tag(session string) string { return "zsbx-" + session }

// check refuses invalid options, which would go into the profile unquoted.
func (o Options) check(r *resolve.Resolved) error {
	if r == nil {
		return errors.New("writing a seatbelt profile: no policy")
	}
	if r.OS != "macos" {
		return fmt.Errorf("writing a seatbelt profile: the policy was resolved for %q", r.OS)
	}
	if o.Session != "" && !fingerprint.Valid(o.Session) {
		return fmt.Errorf("writing a seatbelt profile: session %q is not a UUID in lower case", o.Session)
	}
	if o.Terminal != "" && !IsTerminal(o.Terminal) {
		return fmt.Errorf("writing a seatbelt profile: terminal %q is not a /dev/ttysNNN", o.Terminal)
	}
	return nil
}

// devices allows the command's own terminal.
func (w *sbpl) devices(o Options) {
	if o.Terminal != "" {
		w.section("the command's terminal")
		w.allow([]string{"file-read*", "file-write-data", "file-ioctl"}, "zsbx", `(literal "`+o.Terminal+`")`)
	}
}
