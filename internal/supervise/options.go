package supervise

import (
	"io"
	"slices"
	"sync"
	"time"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/track"
	"github.com/zsbx/zsbx/policy"
)

// Options say how a command is run. Only Args is needed.
type Options struct {
	// Args are the command and its arguments. The command is looked up as by
	// execvp(3), in the PATH that the policy gives it.
	Args []string

	// Stdin, Stdout and Stderr are the command's. An *os.File is passed on as
	// it is, nil is /dev/null, and anything else is copied through a pipe. Input
	// that was read for the command and that it did not read is lost. If the
	// policy limits the output, all of it is copied.
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Host is the machine that the policy is resolved on, with the command's
	// working directory and the environment to choose from; nil is
	// policy.ThisHost.
	Host *host.Host

	// Caps is what the kernel can do; nil to probe it.
	Caps *enforce.Caps

	// NoTempDir makes no private temporary directory.
	NoTempDir bool

	// PolicyFiles are files that the policy came from, absolute. The command can't
	// change them.
	PolicyFiles []string

	// Asked is the part of the policy that the user asked for; nil is all of it. The
	// audit log has its hash.
	Asked *policy.Policy

	// Repository is the root of the repository around the working directory,
	// "" for none; see enforce.Options.
	Repository string

	// AllowGaps are the names of gaps that are accepted (enforce.GapNames).
	// Strict treats hardening like what the policy asks for. Accept is asked
	// about gaps that are not accepted by name. If it is nil or says no, the
	// command is not started.
	AllowGaps []string
	Strict    bool
	Accept    func(gaps []enforce.Gap) bool

	// Warn, if it is not nil, gets the warnings, from one goroutine at a time.
	Warn func(Warning)

	// Name names the session (track.CheckName). Tracker says what tracks its
	// processes; "" is track.Auto.
	Name    string
	Tracker track.Kind

	// IDFile is a file that the session's id is written to before the command
	// starts, "" for none.
	IDFile string

	// HostsLog is a file to which a line is appended for each event of connections to
	// hosts outside (HostEvent), "" for none.
	HostsLog string

	// ObserveHosts allows a command with a network by name to reach all hosts that a rule could
	// allow. Result.Reached has the rules for those that it has reached.
	ObserveHosts bool

	// AskHost, if it is not nil, is asked once about each host and port for which a network by name
	// has no rule. It may take long, and be called by several goroutines.
	AskHost func(enforce.HostRequest) enforce.HostAnswer

	// Keep leaves running what the command leaves behind when it ends. Output
	// is no longer copied then: only files stay. If the plan has a Broker,
	// this process goes on answering for it until Command.Served returns. If it
	// ends before, connections and signals of what is left fail. See Front for
	// a program that ends with the command.
	Keep bool

	// TTY runs the command on a new pseudo-terminal (pty(7)). Rows and Columns are its size
	// in characters; 0 means that of Stdin, if that is a terminal, else 24 and 80.
	TTY           bool
	Rows, Columns uint16

	// Controlling makes Stdin, a terminal, the controlling terminal of the command, which gets a
	// new terminal session. It excludes TTY.
	Controlling bool

	// Job makes this process act for the command, as a shell's job: it passes
	// signals on, and stops and continues when the command does. It is for
	// programs that do nothing else, and for one command at a time.
	Job bool

	// KillAfter is how long a command that reached its time limit may take to
	// end after SIGTERM, before it is killed.
	KillAfter time.Duration

	// TrackOnly confines nothing: of the policy only the limits count, and the
	// command gets the whole environment.
	TrackOnly bool

	// SandboxExec makes sandbox-exec(1) apply the limits, on macOS. It can't be
	// checked whether it did.
	SandboxExec bool

	// Explain records what the command is refused, in the Refusals of Command.Plan;
	// package why makes a report of them. It excludes Keep, TrackOnly and Exec.
	Explain bool

	// Model is, with Explain, a narrower plan. What it would refuse is recorded too,
	// although the command may do it.
	Model *enforce.Plan

	// Try says more about layers, if the policy asks for them.
	Try Try

	// Trial makes Plan try whether the kernel makes the layers of the plan.
	Trial bool

	// InPlace tells Plan that the command is to replace this process (Exec).
	InPlace bool
}

// Warning is something that may not be as the user expects.
type Warning struct {
	Text string        // lower case, no full stop; "" when there is only Hint or Gaps
	Hint string        // what to type to zsbx, or ""
	Gaps []enforce.Gap // hardening that is not enforced here, reported before the start

	// Refused is a connection to a host outside that was refused, or failed, "" for none: where to, who,
	// why, and what to type.
	Refused string
	Failed  bool

	Untold *Untold // what an earlier command in the same directory changed; nil for none
}

// warner calls Options.Warn from one goroutine at a time.
func (o *Options) warner() func(Warning) {
	var mu sync.Mutex
	return func(w Warning) {
		if o.Warn != nil {
			mu.Lock()
			defer mu.Unlock()
			o.Warn(w)
		}
	}
}

// acceptGaps decides whether a command may start although some promises can't be
// kept. The plan, nil without one, says what is open then. Missing hardening is a warning, except what
// is reported when the command ends.
func (o *Options) acceptGaps(warn func(Warning), plan *enforce.Plan, gaps []enforce.Gap) error {
	open, hardening := enforce.Unaccepted(gaps, o.AllowGaps, o.Strict)
	if !o.InPlace { // Result.Changes
		hardening = slices.DeleteFunc(hardening, func(g enforce.Gap) bool { return g.Name == enforce.GapDenyMissing })
	}
	if len(hardening) > 0 {
		warn(Warning{Gaps: hardening})
	}
	try := func(g enforce.Gap) bool { return g.Name == enforce.GapTry }
	if slices.ContainsFunc(gaps, try) && !slices.ContainsFunc(open, try) {
		warn(Warning{Text: "what the command writes is real at once: it has no layer"})
	}
	if len(open) == 0 {
		return nil
	}
	open = plan.Counted(open)
	if o.Accept != nil && o.Accept(open) {
		return nil
	}
	return &enforce.GapError{Gaps: open}
}
