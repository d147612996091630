package enforce

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// GapError says which promises of a policy this machine can't keep. It is an
// errors.ErrUnsupported.
type GapError struct {
	Gaps []Gap // at least one
}

func (e *GapError) Error() string {
	parts := make([]string, len(e.Gaps))
	for i, g := range e.Gaps {
		parts[i] = g.String()
	}
	return "this machine cannot keep: " + strings.Join(parts, "; ")
}

// Is makes every GapError an errors.ErrUnsupported.
func (e *GapError) Is(target error) bool { return target == errors.ErrUnsupported }

// String returns the gap in one line: what was asked for, by whom, why it can't be kept, and
// the name to accept it by.
func (g Gap) String() string {
	from := ""
	if g.Origin.Source != "" {
		from = fmt.Sprintf(" (%s)", g.Origin)
	}
	return fmt.Sprintf("%s%s: %s [%s]", g.Promise, from, g.Why, g.Name)
}

// Unaccepted returns the gaps whose names are not in accepted. A command must not start with
// those in open. Those in hardening only need a warning. With strict they are all in open.
func Unaccepted(gaps []Gap, accepted []string, strict bool) (open, hardening []Gap) {
	for _, g := range gaps {
		switch {
		case slices.Contains(accepted, g.Name), g.Kind == Hardening && slices.Contains(accepted, AllHardening):
		case g.Kind == Core || strict:
			open = append(open, g)
		default:
			hardening = append(hardening, g)
		}
	}
	return open, hardening
}

// Err returns a *GapError with Unaccepted's open gaps, or nil.
func (p *Plan) Err(accepted []string, strict bool) error {
	if open, _ := Unaccepted(p.Gaps, accepted, strict); len(open) > 0 {
		return &GapError{Gaps: open}
	}
	return nil
}

// The names of the gaps, which --allow-gap takes. They are stable.
const (
	GapFiles           = "files"            // no Landlock at all: file access can't be limited
	GapTruncate        = "truncate"         // files outside could be emptied
	GapDeny            = "deny"             // a denial inside an allowed tree can't be enforced
	GapDenyMissing     = "deny-missing"     // a denied name in a writable tree does not exist yet and can be made
	GapZsbxFiles       = "own-files"        // zsbx's own files can be changed: policies, trust store, sessions
	GapProtect         = "protect"          // git's hooks, configuration and so on in writable trees can be changed
	GapMetadata        = "metadata"         // chmod, chown, utime, xattr and flags of files outside can be changed
	GapIPC             = "ipc"              // System V IPC and /dev/shm are shared with programs outside
	GapNetwork         = "network"          // the network can't be closed
	GapTCPPorts        = "tcp-ports"        // TCP can't be limited to ports
	GapTCPAutobind     = "tcp-autobind"     // listening on a port that the kernel chooses can't be refused
	GapHosts           = "hosts"            // hosts can't be reached by name, so that none can be
	GapTry             = "try"              // files are written at once, not into a layer
	GapUnixSockets     = "unix-sockets"     // sockets of daemons outside can be connected to by path
	GapAbstractSockets = "abstract-sockets" // sockets of daemons outside can be connected to by abstract name
	GapSignals         = "signals"          // processes outside can be signalled
	GapOrphans         = "orphans"          // what the command leaves running is not ended with it
	GapPriorities      = "priorities"       // limits and priorities of processes outside can be changed
	GapTerminal        = "terminal"         // the command can type into the caller's terminal
	GapTerminals       = "terminals"        // the user's other terminals can be opened by name
	GapLimits          = "limits"           // memory, processes and processors can't be limited
	GapHome            = "home"             // the home directory is the user's own
	GapPids            = "pids"             // processes outside can be seen
	GapKernel          = "kernel"           // system calls that only widen the kernel's attack surface stay open
)

// AllHardening accepts all missing hardening. Unlike the name of a gap it does not turn off
// hardening that is available.
const AllHardening = "hardening"

// GapNames returns the sorted names of all gaps.
func GapNames() []string {
	return []string{
		GapAbstractSockets, GapDeny, GapDenyMissing, GapFiles, GapHome, GapHosts, GapIPC, GapKernel, GapLimits,
		GapMetadata, GapNetwork, GapOrphans, GapZsbxFiles, GapPids, GapPriorities, GapProtect, GapSignals,
		GapTCPAutobind, GapTCPPorts, GapTerminal, GapTerminals, GapTruncate, GapTry, GapUnixSockets,
	}
}
