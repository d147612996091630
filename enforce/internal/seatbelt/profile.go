package seatbelt

import (
	"errors"
	"fmt"
	"strings"

	"github.com/zsbx/zsbx/enforce/fingerprint"
	"github.com/zsbx/zsbx/policy"
)

// Options are what a Seatbelt profile needs beside the policy.
type Options struct {
	// Session is the session's UUID in lower case. The profile carries it
	// as a fingerprint, by which every process under the profile can be
	// told from all others. Its marker files must exist when the command
	// starts. "" leaves the fingerprint out, for reading; Plan.Confine
	// then makes one up, without markers, to prove the profile by.
	Session string

	// Terminal is the terminal of the command, "/dev/ttys003"; "" for
	// none. No other terminal device can be opened.
	Terminal string

	// Protect are absolute paths that the command may never write,
	// whatever the policy says: policy files, session records. They stay
	// readable where the policy says so.
	Protect []string

	// Hide are absolute paths that the command may not read either.
	Hide []string

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
	w := &sbpl{roots: writableRoots(r), pinned: map[string]bool{}}
	w.b.WriteString("(version 1)\n")
	w.deny([]string{"default"}, "zsbx")
	w.processes()
	w.services(r)
	w.devices(o)
	w.lookups(r)
	w.paths(r)
	w.network(r)
	w.doors(r)
	w.sockets(r)
	w.denials(r)
	w.protected(o)
	w.fingerprint(o.Session)
	if w.err != nil {
		return "", w.err
	}
	return w.b.String(), nil
}

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

// processes: forking, signals and information among themselves.
func (w *sbpl) processes() {
	w.section("processes: among themselves only")
	w.allow([]string{"process-fork"}, "zsbx")
	own := []string{"(target self)", "(target same-sandbox)"}
	w.allow([]string{"signal"}, "zsbx", own...)
	info := []string{"process-info*", "process-info-codesignature"}
	w.deny(info, "zsbx: allowed by default")
	w.allow(info, "zsbx", own...)
	w.section("allowed by default, and needed by no build")
	w.deny([]string{
		"nvram*", "iokit-get-properties", "mach-cross-domain-lookup",
		"file-graft", "file-ungraft", "fs-snapshot-mount",
	}, "zsbx")
	w.section("allowed by default; allowed below where the policy allows reading, writing, executing")
	w.deny([]string{"file-clone"}, "zsbx: a clone is a readable copy")
	w.deny([]string{"file-link"}, "zsbx: a hard link is a second name to write by")
	w.deny([]string{"file-map-executable"}, "zsbx: what a loader does")
}

// services: what any program asks of the system.
func (w *sbpl) services(r *policy.Resolved) {
	w.section("system services")
	w.allow([]string{"sysctl-read"}, "zsbx")
	w.allow([]string{"sysctl-write"}, "zsbx: java, node",
		`(sysctl-name "kern.grade_cputype")`, `(sysctl-name "kern.tcsm_enable")`)
	w.allow([]string{"ipc-posix-sem"}, "zsbx: python")
	w.allow([]string{"ipc-posix-shm-read-data"}, "zsbx", `(ipc-posix-name "apple.shm.notification_center")`)
	w.allow([]string{"ipc-posix-shm-read-data", "ipc-posix-shm-write-create", "ipc-posix-shm-write-data", "ipc-posix-shm-write-unlink"},
		"zsbx: openmp, python", `(ipc-posix-name-regex "^/(__KMP_REGISTERED_LIB_|psm_)")`)
	w.lookup("zsbx",
		"com.apple.FSEvents",
		"com.apple.bsd.dirhelper",
		"com.apple.diagnosticd",
		"com.apple.logd",
		"com.apple.system.logger",
		"com.apple.system.notification_center",
		"com.apple.system.opendirectoryd.libinfo",
		"com.apple.system.opendirectoryd.membership",
	)
	if r.Net.Mode == policy.NetNone {
		return
	}
	w.lookup("zsbx: certificates", "com.apple.ocspd", "com.apple.trustd", "com.apple.trustd.agent")
	w.lookup("zsbx: network settings",
		"com.apple.SystemConfiguration.DNSConfiguration",
		"com.apple.SystemConfiguration.configd",
		"com.apple.networkd",
	)
}

// lookup allows looking up services by name.
func (w *sbpl) lookup(from string, names ...string) {
	w.allow([]string{"mach-lookup"}, from, fingerprint.GlobalNames(names)...)
}

// devices: the command's own terminal and those that it makes itself.
func (w *sbpl) devices(o Options) {
	w.section("terminals: the command's own, and those it opens itself")
	ops := []string{"file-read*", "file-write-data", "file-ioctl"}
	w.allow([]string{"pseudo-tty"}, "zsbx")
	w.allow(ops, "zsbx", `(literal "/dev/tty")`, `(literal "/dev/ptmx")`)
	w.allow(ops, "zsbx", `(require-all (regex "^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty"))`)
	if o.Terminal != "" {
		w.allow(ops, "zsbx: the command's terminal", `(literal "`+o.Terminal+`")`)
	}
	w.allow([]string{"file-read*", "file-write-data"}, "zsbx: open descriptors", `(subpath "/dev/fd")`)
}
