package enforce

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/zsbx/zsbx/internal/enforce/broker"
	"github.com/zsbx/zsbx/internal/enforce/deny"
	"github.com/zsbx/zsbx/internal/enforce/hosts"
	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/enforce/protect"
	"github.com/zsbx/zsbx/internal/enforce/seatbelt"
	"github.com/zsbx/zsbx/internal/enforce/seccomp"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// Caps is what a machine can enforce. Probe asks the kernel for each capability and never goes
// by version numbers. The zero value can enforce nothing.
type Caps struct {
	OS string // "linux" or "macos"

	// Err is what kept Probe from finding out: a shortage (fork.ShortageOf), or an error that is no
	// answer. All else is then unknown. Confine of a plan made with it returns this error.
	Err error

	Landlock       int    // ABI version; 0 if the system calls are missing or refused
	LandlockReason string // why Landlock is 0: "it is not built into this kernel"

	Seccomp       bool   // filters can be installed without privileges
	SeccompReason string // why Seccomp is false

	SeccompNotify       bool   // a filter can hand system calls to this process, and this process can answer them
	SeccompNotifyReason string // why SeccompNotify is false
	Answered            bool   // an outer supervisor may make connect(2) for the command, whatever Landlock says here

	// MountNS says that a private mount namespace can be made, with CAP_SYS_ADMIN or in a user
	// namespace. Probe assumes so unless there is a sign against it, since making sure takes a
	// process. The start of a command proves it (see Plan.Refused), and so does
	// ProbeNamespaces.
	MountNS     bool
	MountReason string // why MountNS is false
	MountHint   string // what the machine's owner can type to change that; may be ""
	UserNSBy    string // what allows user namespaces where AppArmor can restrict them; "" elsewhere
	IPCReason   string // why there can be no IPC namespace; "" until the kernel refused one
	PidsReason  string // why there can be no PID namespace; "" until the kernel refused one
	NetReason   string // why there can be no network namespace; "" until the kernel refused one
	HomeReason  string // why there can be no private home
	TryReason   string // why there can be no layers; "" until the kernel refused an overlay
	Privileged  bool   // this process has CAP_SYS_ADMIN

	// Orphans says that nobody ends what the command leaves running, although it should be
	// ended: see InPlace.
	Orphans bool

	UID, GID uint32 // effective ids; the command runs with them

	Capabilities uint64 // the permitted set, as bits (capabilities(7)); 0 for an ordinary user

	Arch string // the machine's name as Go spells it: "amd64", "arm64"

	Seatbelt       bool // sandbox_init works
	SeatbeltReason string
}

// Kind is the kind of a policy's promise.
type Kind string

const (
	// Core promises are file access and all that was asked for explicitly. If one can't be
	// kept, the command is not started unless the caller accepts the Gap.
	Core Kind = "core"
	// Hardening promises are made by default. A missing one causes a warning.
	Hardening Kind = "hardening"
)

// Gap is a promise that can't be kept on this machine.
type Gap struct {
	Name    string        `json:"name"` // stable, for --allow-gap: "tcp-ports", "truncate", "deny"
	Kind    Kind          `json:"kind"`
	Promise string        `json:"promise"`         // what was asked for: "only the TCP ports that are listed"
	Why     string        `json:"why"`             // what is missing: "Landlock ABI 4 (Linux 6.7) is needed"
	Hint    string        `json:"hint,omitempty"`  // what to type instead; may be ""
	Origin  policy.Origin `json:"origin,omitzero"` // the rule that asked; zero for defaults
	GivesUp string        `json:"-"`               // what is open if it is accepted, counted: see Plan.Counted
}

// Layer is a mechanism that a Plan uses, for people: "landlock", "seccomp".
type Layer struct {
	Name   string `json:"name"`
	Detail string `json:"detail"` // "ABI 7: 14 file rights, 2 network rights, signal and abstract-socket scopes"
}

// Plan is what will be enforced for one command on one machine.
type Plan struct {
	Policy *resolve.Resolved
	Caps   Caps
	Env    []string // of the command: see Resolved.EnvWith

	Landlock *landlock.Ruleset // nil if Landlock is not used
	Seccomp  *seccomp.Filter   // nil if seccomp is not used

	// Seatbelt is what the profile on macOS depends on besides the policy, or nil if Seatbelt
	// is not used. A caller with a session sets Session, and what else it knows, before
	// Confine.
	Seatbelt *seatbelt.Options

	// Broker says which calls the broker in the calling program answers while the command runs.
	// It is nil if there are none, or if there can be no broker.
	Broker *broker.Policy

	Mounts *mounts.Plan // nil if the command stays in the caller's mount namespace

	// DropCapabilities are the bits of Caps.Capabilities that the command
	// loses; 0 for an ordinary user.
	DropCapabilities uint64

	Gaps []Gap

	signals      seccomp.SignalMode // what the broker answers
	tmp          string             // what /tmp and /var/tmp are for the command; "" if there is nothing to say
	own          bool               // the session has a network of its own
	hosts        *hosts.Config      // which hosts outside may be reached from it
	noHosts      string             // why none can be, although the policy lists some
	profileRules int                // how many rules the Seatbelt profile has

	opened []string      // protected files that may be written in layers
	names  []netip.Addr  // the machine's name servers, if the command has to look up addresses
	audit  protect.Audit // what Snapshot compares
	found  deny.Searched // what denials match in trees

	model     *Plan               // Options.Model
	reopened  []landlock.PathRule // rights for reopening descriptors 0 to 2 of the last confined command
	denied    int                 // denied files that mounts should hide
	open      int                 // how many of these can't be hidden
	recording *seccomp.Filter     // with Options.Explain: the filter installed instead of Seccomp
	recorder  recorder            // of the last confined command, or nil
}

// Snapshot records the protected files in writable trees. Call it right before the command
// starts. It takes about a microsecond for each of a few dozen paths. What globs among the
// denials match is known from NewPlan, which has searched the trees.
func (p *Plan) Snapshot(h *host.Host) *protect.Snapshot { return p.audit.Snapshot(h, p.found) }

// NewPlan decides what will be enforced for r on a machine that can enforce caps. It is pure,
// except that it reads through host: on Linux denied or protected files in writable trees, and
// the directories of read-only trees with a denial. With a nil host, or one that lacks a
// function, such a denial is a Gap. If this machine is too short of resources to read them,
// Plan.Caps.Err says so (see Noted).
func NewPlan(r *resolve.Resolved, caps Caps, h *host.Host, opts Options) *Plan {
	p := &Plan{Policy: r, Caps: caps}
	short := func() error { return nil }
	if h != nil && h.Lstat != nil && h.Readlink != nil && h.ReadDir != nil && h.ReadFile != nil {
		h, short = Noted(h)
		h = h.Remembering()
	} else {
		h = nil
	}
	switch caps.OS {
	case "macos":
		p.planMacOS(h, opts)
	default:
		p.planLinux(h, opts)
	}
	p.Env = r.EnvWith(p.Mounts.PrivateIn("/tmp") != "")
	p.Caps.Err = cmp.Or(p.Caps.Err, short())
	return p
}

// The parts of a Plan, by the names that callers outside use. Each has its own package below
// internal.
type (
	// Broker answers the calls that a plan leaves to it.
	Broker = broker.Broker
	// HostRequest is a question about a host, and HostAnswer its answer.
	HostRequest = hosts.Request
	HostAnswer  = hosts.Answer
	// Snapshot is the state of the protected set at one time.
	Snapshot = protect.Snapshot
	// Change is a file that changed.
	Change = protect.Change
	// SeatbeltOptions has what a Seatbelt profile depends on besides the policy.
	SeatbeltOptions = seatbelt.Options
)

// LoadSnapshot returns a snapshot that another process saved, with Snapshot.Save.
func LoadSnapshot(b []byte, h *host.Host) (*Snapshot, error) { return protect.Load(b, h) }

// SeatbeltProfile returns the Seatbelt profile for a policy.
func SeatbeltProfile(r *resolve.Resolved, o SeatbeltOptions) (string, error) {
	return seatbelt.Profile(r, o)
}

// Confine makes the command start under the plan. On Linux it makes the Landlock ruleset and
// appends the system calls that apply the restrictions to c.Steps. The child makes them between
// fork and exec. c.Cleanup closes what was opened. Steps that must be unrestricted have to be
// in c.Steps before.
//
// The Broker is nil unless Plan.Broker is set. The caller runs its Serve in a separate goroutine,
// before or after the command is started, and calls its Close if the command is not started.
//
// On macOS it puts the profile for the command's terminal and the session of ForSession into
// c.Sandbox. Programs that start such commands must call fork.SandboxMain.
//
// Confine ignores gaps: ask Err first. On Linux c.Commit fills the ruleset. If a path of the
// policy is no longer what was resolved, the command is not started.
func (p *Plan) Confine(c *fork.Command) (*Broker, error) { return p.confine(c) }

// Options has the caller's choices that are not part of a policy.
type Options struct {
	// Accepted are the names of accepted gaps. Some of these are then left open even if they
	// could be closed: GapProtect, GapIPC, GapTerminals; GapMetadata if only it would need a
	// mount namespace; GapZsbxFiles if it would need a writable tree to be split.
	Accepted []string

	// Protect are absolute, clean paths of the caller's files and directories that the command
	// must never change: policy files, the trust store, records of sessions. They should exist.
	Protect []string

	// Compare are files and directories of the caller that can't be protected. Changes are
	// reported when the command has ended.
	Compare []string

	// Repository is the root of the repository around the working directory, or "". In a
	// writable tree it is protected like one near the top, at any depth.
	Repository string

	// Hide are directories of Protect that the command has no reason to read either, such as
	// the records of other sessions. A mount namespace covers them, unless the policy names one
	// of them or something in it. Without one the policy decides whether they can be read.
	Hide []string

	// Try says how layers are made, if the policy asks for them. State must be set then.
	Try mounts.Try

	// Explain records what the command is refused: see Plan.Refusals. The command needs a
	// keeper, and the caller must serve the Broker.
	Explain bool

	// ObserveHosts allows all hosts that a rule could allow, to find out which are needed. What
	// is needed is in the events of the Broker.
	ObserveHosts bool

	// AskHost is asked about hosts that no rule of a network by name decides about; nil refuses them.
	AskHost hosts.Asker

	// Model is a plan whose refusals are recorded, too, although this one allows the acts.
	Model *Plan

	// NoProxy is why nobody serves the command's proxy until its session has ended, or "". On macOS
	// hosts outside are reached by it.
	NoProxy string

	// NoLimits is why the policy's limits of memory, processes and processors can't be set, or
	// "". Package track finds out.
	NoLimits string
}

func (o *Options) accepts(gap string) bool { return slices.Contains(o.Accepted, gap) }

// protectRequest returns what the caller wants protected.
func (o *Options) protectRequest(table func() mounts.Table) protect.Request {
	return protect.Request{
		ZsbxFiles:  o.Protect,
		Compare:    o.Compare,
		Users:      !o.accepts(GapProtect),
		Repository: o.Repository,
		Table:      table,
	}
}
