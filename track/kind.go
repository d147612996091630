package track

import (
	"errors"
	"fmt"
	"strings"
)

// Kind names a way of holding on to all processes of a session.
type Kind string

// The trackers, strongest first. Fingerprint is macOS's, the others are
// Linux's; Group works on both.
const (
	Auto        Kind = "auto"        // the strongest that works here; never stored
	Domain      Kind = "domain"      // an outer Landlock domain with a keeper in it
	Fingerprint Kind = "fingerprint" // a Seatbelt profile that answers two questions in its own way
	Cgroup      Kind = "cgroup"      // a control group of the session's own
	Subtree     Kind = "subtree"     // a keeper that adopts every orphan
	Group       Kind = "group"       // the command's process group
	Process     Kind = "process"     // the command's own process, of one that replaced its supervisor; never asked for
)

// ParseKind reads a tracker's name as a user types it; "" is Auto.
func ParseKind(s string) (Kind, error) {
	switch k := Kind(s); k {
	case "":
		return Auto, nil
	case Auto, Domain, Fingerprint, Cgroup, Subtree, Group:
		return k, nil
	}
	return "", fmt.Errorf("unknown tracker %q: auto, domain, cgroup or subtree", cut(s, 40))
}

// Guarantee says in one line what the tracker promises. confined says that the
// command is confined so that it can neither write to cgroupfs nor talk to
// service managers. Signals to the keeper are another matter: only a Landlock
// domain, from Linux 6.12 on, keeps a command from sending them.
func (k Kind) Guarantee(confined bool) string {
	switch {
	case k == Domain:
		return "every descendant; none can leave; killed at once, proved empty"
	case k == Fingerprint:
		return "every descendant; none can leave; killed in rounds until two clean scans"
	case k == Cgroup && confined:
		return "every descendant; none can leave; killed at once, proved empty"
	case k == Cgroup:
		return "every descendant that does not move itself to another control group; killed at once, proved empty"
	case k == Subtree && confined:
		return "every descendant while the keeper lives (before Linux 6.12 the command could kill it); killed one by one, proved empty"
	case k == Subtree:
		return "every descendant while the keeper lives (the command could kill it); killed one by one, proved empty"
	case k == Process:
		return "the command, its descendants, and what has its environment; a daemon that changes that escapes; nobody ends them with the command"
	case k == Group:
		return "only processes that stay in the command's process group; a daemon escapes"
	}
	return "unknown"
}

// Caps is what a machine offers for tracking. The zero value offers nothing.
type Caps struct {
	OS string // "linux", "macos"

	// Err says that this machine was too short of something to be asked
	// (fork.ShortageOf).
	Err error

	// Landlock is the ABI version, 0 if the system calls are missing or
	// refused, with LandlockWhy as the reason.
	Landlock    int
	LandlockWhy string

	// Cgroup is the directory of a control group (version 2) below which a
	// group for a session can be made and entered; "" if there is none,
	// with CgroupWhy as the reason.
	Cgroup    string
	CgroupWhy string

	// UserManager says that the user's systemd answers on its bus and can
	// make a scope; else UserManagerWhy is the reason.
	UserManager    bool
	UserManagerWhy string

	// Keeper says that a keeper can be had: prctl(PR_SET_CHILD_SUBREAPER).
	Keeper    bool
	KeeperWhy string

	// Seatbelt says that the fingerprint works; else SeatbeltWhy is the
	// reason.
	Seatbelt    bool
	SeatbeltWhy string
}

// domainABI is the first Landlock ABI with LANDLOCK_SCOPE_SIGNAL (Linux 6.12).
//
// Its erratum 2 (signals between the threads of one process that are in
// different domains) does not matter here: the keeper has one thread, and the
// command is in its domain before it can make another.
const domainABI = 6

// ErrTracker is what every *TrackerError is.
var ErrTracker = errors.New("tracker not available")

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

// Is ties the type to ErrTracker.
func (e *TrackerError) Is(target error) bool { return target == ErrTracker }

// Choice is the result of Choose.
type Choice struct {
	Kind  Kind
	Scope bool // the control group comes from the user's systemd

	// Missed lists why each stronger tracker was passed over.
	Missed []*TrackerError
}

// Why gives the reasons of Missed in one line.
func (c Choice) Why() string {
	s := make([]string, 0, len(c.Missed))
	for _, m := range c.Missed {
		s = append(s, fmt.Sprintf("%s: %s", m.Kind, m.Why))
	}
	return strings.Join(s, "; ")
}

// Choose decides which tracker holds a session: want if it was asked for by
// name, else the strongest that c offers. scoped says that the command puts
// itself into a Landlock domain (or Seatbelt profile) of its own that keeps it
// from signalling outsiders; a command that is only tracked does not, and can
// have no domain. The error is a *TrackerError.
func Choose(c Caps, want Kind, scoped bool) (Choice, error) {
	var ch Choice
	for _, k := range []Kind{Domain, Fingerprint, Cgroup, Subtree, Group} {
		if want != Auto && want != "" && want != k {
			continue
		}
		if k == Fingerprint && c.OS != "macos" && want != k || (k == Domain || k == Cgroup || k == Subtree) && c.OS == "macos" && want != k {
			continue // the other system's: not worth a word
		}
		e := c.lacks(k, scoped)
		if e == nil {
			ch.Kind = k
			ch.Scope = k == Cgroup && c.Cgroup == ""
			return ch, nil
		}
		if want == k {
			return Choice{}, e
		}
		ch.Missed = append(ch.Missed, e)
	}
	return Choice{}, &TrackerError{Kind: want, Why: "no such tracker"}
}

// lacks says what c lacks for k, nil if nothing.
func (c Caps) lacks(k Kind, scoped bool) *TrackerError {
	e := &TrackerError{Kind: k}
	switch k {
	case Domain:
		switch {
		case c.OS != "linux":
			e.Why = "Landlock is Linux's"
		case !c.Keeper:
			e.Why = "no keeper: " + orUnknown(c.KeeperWhy)
		case c.Landlock == 0:
			e.Why = "no Landlock: " + orUnknown(c.LandlockWhy)
			e.Hint = "--track auto"
		case c.Landlock < domainABI:
			e.Why = fmt.Sprintf("Landlock ABI %d (Linux 6.12) is needed for signal scopes, this kernel has %d", domainABI, c.Landlock)
			e.Hint = "--track auto"
		case !scoped:
			e.Why = "it would restrict a command that is only to be tracked"
			e.Hint = "--track cgroup"
		default:
			return nil
		}
	case Fingerprint:
		switch {
		case c.OS != "macos":
			e.Why = "Seatbelt is macOS's"
		case !c.Seatbelt:
			e.Why = orUnknown(c.SeatbeltWhy)
		default:
			return nil
		}
	case Cgroup:
		switch {
		case c.OS != "linux":
			e.Why = "control groups are Linux's"
		case c.Cgroup == "" && !c.UserManager:
			e.Why = fmt.Sprintf("no writable control group (%s) and no user manager (%s)", orUnknown(c.CgroupWhy), orUnknown(c.UserManagerWhy))
			e.Hint = "--track auto"
		default:
			return nil
		}
	case Subtree:
		switch {
		case c.OS != "linux":
			e.Why = "only Linux lets a process adopt orphans"
		case !c.Keeper:
			e.Why = "no keeper: " + orUnknown(c.KeeperWhy)
		default:
			return nil
		}
	case Group:
		return nil
	}
	return e
}

func orUnknown(why string) string {
	if why == "" {
		return "not looked for"
	}
	return why
}
