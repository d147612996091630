package track

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Kind names a way of holding on to all processes of a session.
type Kind string

// The trackers, strongest first. Fingerprint is macOS's, the others are Linux's.
const (
	Auto        Kind = "auto"        // the strongest that works here; never stored
	Domain      Kind = "domain"      // an outer Landlock domain with a keeper in it
	Fingerprint Kind = "fingerprint" // a Seatbelt profile that answers two questions in its own way
	Cgroup      Kind = "cgroup"      // a control group of the session's own
	Subtree     Kind = "subtree"     // a keeper that adopts every orphan
	Process     Kind = "process"     // the command's own process, of one that replaced its supervisor; never asked for
)

// Valid reports whether k can be asked for; "" is Auto.
func (k Kind) Valid() bool {
	return slices.Contains([]Kind{"", Auto, Domain, Fingerprint, Cgroup, Subtree}, k)
}

// Guarantee says in one line what the tracker promises. confined says that the
// command is confined so that it can neither write to cgroupfs nor talk to
// service managers. Signals to the keeper are another matter: only a Landlock
// domain, from Linux 6.12 on, keeps a command from sending them.
func (k Kind) Guarantee(confined bool) string {
	switch {
	case k == Domain, k == Cgroup && confined:
		return "every descendant; none can leave; killed at once, proved empty"
	case k == Fingerprint:
		return "every descendant; none can leave; killed in rounds until two clean scans"
	case k == Cgroup:
		return "every descendant that does not move itself to another control group; killed at once, proved empty"
	case k == Subtree:
		before := map[bool]string{true: "before Linux 6.12 "}[confined]
		return "every descendant while the keeper lives (" + before + "the command could kill it); killed one by one, proved empty"
	case k == Process:
		return "the command, its descendants, and what has its environment; a daemon that changes that escapes; nobody ends them with the command"
	}
	return "unknown"
}

// caps is what a machine offers for tracking.
type caps struct {
	os       string // runtime.GOOS
	err      error  // it was too short of something to be asked (fork.ShortageOf)
	landlock int    // the ABI version
	group    string // the directory of a control group below which a session's can be made and entered

	// Why something can't be had, "" where it can.
	noDomain, noGroup, noScope, noSeatbelt string
}

// TrackerError says that a tracker cannot be had, why and what to do.
type TrackerError struct {
	Kind Kind
	Why  string
	Hint string // something to type, or ""
	Err  error  // the system's, if there is one
}

func (e *TrackerError) Error() string {
	return fmt.Sprintf("tracker %s is not available here: %s", e.Kind, e.Why)
}

// Unwrap gives the system's error, if there is one.
func (e *TrackerError) Unwrap() error { return e.Err }

// Choice is the tracker of a session.
type Choice struct {
	Kind  Kind
	Scope bool   // the control group comes from the user's systemd
	Why   string // each stronger tracker was passed over
}

// Best finds out, by doing, what would track a command: it may make a control group
// and remove it again, and ask the user's service manager. scoped is
// Options.Scoped. The error is a *TrackerError.
func Best(scoped bool) (Choice, error) {
	o := Options{Tracker: Auto, Scoped: scoped}
	return probe(o).choose(o)
}

// choose decides which tracker holds a session: the one that was asked for by name, else
// the strongest that c offers. A command that replaces its supervisor takes no control
// group by itself: to move a process that runs into one, the kernel waits for all
// processors (cgroup_threadgroup_rwsem), for longer than a start takes. The error is a
// *TrackerError.
func (c caps) choose(o Options) (Choice, error) {
	kinds, none := []Kind{Domain, Cgroup, Subtree}, "this system has no such tracker"
	switch {
	case c.os == "darwin":
		kinds = []Kind{Fingerprint}
	case o.Exec:
		kinds, none = []Kind{Process, Cgroup}, "it needs a supervisor, which --exec does away with"
	}
	var why []string
	for _, k := range kinds {
		if o.Tracker != Auto && o.Tracker != k {
			continue
		}
		e := c.lacks(k, o.Scoped)
		if e == nil {
			return Choice{k, k == Cgroup && c.group == "", strings.Join(why, "; ")}, nil
		}
		if len(kinds) == 1 || o.Tracker == k {
			return Choice{}, e
		}
		why = append(why, fmt.Sprintf("%s: %s", k, e.Why))
	}
	return Choice{}, &TrackerError{Kind: o.Tracker, Why: none, Hint: "--track auto"}
}

// lacks says what c lacks for a tracker of its system, nil if nothing.
func (c caps) lacks(k Kind, scoped bool) *TrackerError {
	e := &TrackerError{Kind: k, Hint: "--track auto"}
	switch {
	case k == Domain && c.noDomain != "":
		e.Why = c.noDomain
	case k == Domain && !scoped:
		e.Why, e.Hint = "it would restrict a command that is only to be tracked", "--track cgroup"
	case k == Fingerprint && c.noSeatbelt != "":
		e.Why, e.Hint = c.noSeatbelt, ""
	case k == Cgroup && c.group == "" && c.noScope != "":
		e.Why = fmt.Sprintf("no writable control group (%s) and no user manager (%s)", cmp.Or(c.noGroup, "not looked for"), c.noScope)
	default:
		return nil
	}
	return e
}
