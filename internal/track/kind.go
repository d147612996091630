package track

import (
	"fmt"
	"strings"
)

// Kind is a way to keep track of all processes of a session.
type Kind string

// The trackers, strongest first. Fingerprint is macOS's, the others are Linux's.
const (
	Auto        Kind = "auto"        // the strongest that works here; never stored
	Domain      Kind = "domain"      // an outer Landlock domain with a keeper in it
	Fingerprint Kind = "fingerprint" // a Seatbelt profile with two recognizable answers
	Cgroup      Kind = "cgroup"      // a control group for the session
	Subtree     Kind = "subtree"     // a keeper that adopts every orphan
	Process     Kind = "process"     // the command itself, which replaced its supervisor; can't be asked for
)

// Guarantee returns in one line what the tracker promises. confined says that the command can
// neither write to cgroupfs nor talk to service managers. It may still be able to signal the
// keeper: only a Landlock domain prevents that, since Linux 6.12.
func (k Kind) Guarantee(confined bool) string {
	const whole = "every descendant; none can leave; killed at once, proved empty"
	switch k {
	case Domain:
		return whole
	case Fingerprint:
		return "every descendant; none can leave; killed in rounds until two clean scans"
	case Cgroup:
		if confined {
			return whole
		}
		return "every descendant that does not move itself to another control group; killed at once, proved empty"
	case Subtree:
		could := "the command could kill it"
		if confined {
			could = "before Linux 6.12 " + could
		}
		return "every descendant while the keeper lives (" + could + "); killed one by one, proved empty"
	case Process:
		return "the command, its descendants, and what has its environment; a daemon that changes that escapes; " +
			"nobody ends them with the command"
	}
	return "unknown"
}

// caps has what a machine offers for tracking.
type caps struct {
	os       string // runtime.GOOS
	err      error  // a shortage that kept the probe from finding out (fork.ShortageOf)
	landlock int    // the ABI version
	group    string // the directory in which a session's control group can be made, or scope

	noDomain, noGroup, noSeatbelt string // why something is not available, or ""
}

// TrackerError says that a tracker is not available, why, and what to do.
type TrackerError struct {
	Kind Kind
	Why  string
	Hint string // something to type, or ""
	Err  error  // the system's, if there is one
}

// Error says why it is not available.
func (e *TrackerError) Error() string {
	return fmt.Sprintf("tracker %s is not available here: %s", e.Kind, e.Why)
}

// Unwrap returns the system's error.
func (e *TrackerError) Unwrap() error { return e.Err }

// Choice is the tracker of a session.
type Choice struct {
	Kind  Kind
	Scope bool   // the user's systemd makes the control group
	Why   string // why each stronger tracker was not chosen
}

// Best finds out by trying what would track a command. It may make a control group and remove
// it again, and ask the user's service manager. scoped is Options.Scoped. The error is a
// *TrackerError.
func Best(scoped bool) (Choice, error) {
	o := Options{Tracker: Auto, Scoped: scoped}
	return probe(o).choose(o)
}

// choose returns a session's tracker: the one that was asked for, or else the strongest that c
// offers. A command that replaces its supervisor has no choice. The error is a *TrackerError.
func (c caps) choose(o Options) (Choice, error) {
	kinds := []Kind{Domain, Cgroup, Subtree}
	none := "this system has no such tracker"
	switch {
	case c.os == "darwin":
		kinds = []Kind{Fingerprint}
	case o.Exec:
		kinds = []Kind{Process}
		none = "it needs a supervisor, and with --exec there is none"
	}
	lacks := map[Kind]string{Domain: c.noDomain, Cgroup: c.noGroup, Fingerprint: c.noSeatbelt}
	if c.noDomain == "" && !o.Scoped {
		lacks[Domain] = "it would restrict a command that is only to be tracked"
	}
	var passed []string
	for _, k := range kinds {
		switch {
		case o.Tracker != Auto && o.Tracker != k:
		case lacks[k] == "":
			return Choice{Kind: k, Scope: k == Cgroup && c.group == scope, Why: strings.Join(passed, "; ")}, nil
		case o.Tracker == k || len(kinds) == 1:
			return Choice{}, &TrackerError{Kind: k, Why: lacks[k], Hint: "--track auto"}
		default:
			passed = append(passed, fmt.Sprintf("%s: %s", k, lacks[k]))
		}
	}
	return Choice{}, &TrackerError{Kind: o.Tracker, Why: none, Hint: "--track auto"}
}
