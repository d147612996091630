package sandbox

import (
	"cmp"
	"io"
	"time"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/supervise"
	sessions "github.com/zsbx/zsbx/internal/track"
	"github.com/zsbx/zsbx/track"
)

// DefaultKillAfter is what Options.KillAfter is if it is 0.
const DefaultKillAfter = 5 * time.Second

// Options say how a command is run. Only Args is needed.
type Options struct {
	// Args are the command and its arguments. The command is looked up as by execvp(3), in
	// the PATH that the policy gives it.
	Args []string

	// Stdin, Stdout and Stderr are the command's. An *os.File is passed on as it is, nil is
	// /dev/null, and anything else is copied through a pipe. Input that was read for the
	// command and that it did not read is lost. If the policy limits the output, all of it is
	// copied.
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Dir is the command's working directory; "" is this process's.
	Dir string

	// Env is what the policy chooses the command's environment from, NAME=VALUE; nil is
	// this process's. The policy's variables have these values, too, but "~" is this process's
	// home directory.
	Env []string

	// PolicyFiles are files that the policy came from, absolute. The command can't change
	// them.
	PolicyFiles []string

	// NoTempDir gives the command no private temporary directory, and leaves /tmp and /var/tmp to
	// the policy: compose.Sources.SharedTmp allows them. Both together are --shared-tmp.
	NoTempDir bool

	// AllowGaps are the names of gaps that are accepted, as --allow-gap takes them. Strict
	// treats hardening like what the policy asks for. Accept is asked about gaps that are not
	// accepted by name. If it is nil or says no, the command is not started.
	AllowGaps []string
	Strict    bool
	Accept    func(gaps []Gap) bool

	// KillAfter is how long a command that reached its time limit (policy.Limits) may take
	// to end after SIGTERM, before it is killed; 0 is DefaultKillAfter.
	KillAfter time.Duration

	// TTY runs the command on a new pseudo-terminal (pty(7)), between Stdin and
	// Stdout. Size is the size of it: 0 is that of Stdin, if that is a terminal, else 24 rows
	// of 80 columns. Command.Resize changes it.
	TTY  bool
	Size Size

	// Controlling runs the command in a new terminal session, whose controlling
	// terminal is Stdin. Stdin has to be a terminal that is none's yet, such as the end of a
	// pseudo-terminal that the caller has opened, and may close once Start has returned. It
	// excludes TTY.
	Controlling bool

	// Name names the session (track.CheckName). Tracker says what tracks its processes; "" is
	// track.Auto.
	Name    string
	Tracker track.Kind

	// Keep leaves running what the command leaves behind when it ends. Output is no longer
	// copied then: only files stay. Connections and signals of what is left fail once this
	// process has ended.
	Keep bool

	// TrackOnly confines nothing: of the policy, which may be nil, only the limits count, and
	// the command gets the whole environment.
	TrackOnly bool

	// Job makes this process act for the command, as a shell's job: it passes signals on, and
	// stops and continues when the command does. It is for programs that do nothing else, and
	// for one command at a time.
	Job bool

	// Warn, if it is not nil, gets the warnings, from one goroutine at a time.
	Warn func(Warning)

	// Host, if it is not nil, is asked about a host for which [net] hosts of the policy, which
	// may be an empty list, has no rule: once for each host and port of the session. The connection
	// waits for the answer. It may be called by several goroutines, and when the command has ended.
	// What deny_hosts has is refused without asking.
	Host func(HostRequest) HostAnswer

	// Try says more about the layer, if the policy has FS.Writes "try": see Result.Layer.
	Try Try

	// Explain records what the command is refused: see Result.Denials. It excludes Keep and
	// TrackOnly.
	Explain bool
}

// HostRequest is a host that a command wants to connect to by TCP.
type HostRequest struct {
	Host    string // a name in lower case, or an address
	Port    uint16
	Program string // how its process calls itself, and the process id
}

// HostAnswer says whether a command may connect to a host. The zero value says no.
type HostAnswer int

// The answers. AllowHost keeps addresses closed that are private or this machine's.
const (
	RefuseHost HostAnswer = iota
	AllowHost
	AllowPrivateHost
)

// Size is the size of a terminal in characters.
type Size struct{ Rows, Columns uint16 }

// Warning is something that may not be as the user expects.
type Warning struct {
	Text string // lower case, no full stop; "" when there is only Hint or Gaps
	Hint string // what to type to zsbx, or ""
	Gaps []Gap  // hardening that is not enforced here, reported before the start

	Earlier *Earlier // what an earlier command in the same directory changed; nil for none
}

// Earlier is what a command changed whose own program was killed or could not report that,
// or what changed since the command of a kept session was started.
type Earlier struct {
	Session string
	Kept    bool // nothing was killed: what the command itself changed was reported
	Lives   bool // the session has not ended; the rest is reported when it has
	Changes []Change
	Err     error // why the changes can't be reported
}

// options returns the options of the package that does the work.
func (o *Options) options() (supervise.Options, error) {
	h, err := host.HostIn(o.Dir)
	if err != nil {
		return supervise.Options{}, err
	}
	if o.Env != nil {
		h.Env = o.Env
	}
	out := supervise.Options{
		Args:  o.Args,
		Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr,
		Host:        &h,
		Repository:  h.Project(),
		PolicyFiles: o.PolicyFiles,
		NoTempDir:   o.NoTempDir,
		AllowGaps:   o.AllowGaps,
		Strict:      o.Strict,
		KillAfter:   cmp.Or(o.KillAfter, DefaultKillAfter),
		TTY:         o.TTY,
		Rows:        o.Size.Rows,
		Columns:     o.Size.Columns,
		Controlling: o.Controlling,
		Name:        o.Name,
		Tracker:     sessions.Kind(o.Tracker),
		Keep:        o.Keep,
		TrackOnly:   o.TrackOnly,
		Job:         o.Job,
		Explain:     o.Explain,
		Try:         supervise.Try(o.Try),
	}
	if o.Host != nil {
		out.AskHost = func(r enforce.HostRequest) enforce.HostAnswer {
			return enforce.HostAnswer(o.Host(HostRequest(r)))
		}
	}
	if o.Accept != nil {
		out.Accept = func(gaps []enforce.Gap) bool { return o.Accept(gapsOf(gaps)) }
	}
	if o.Warn != nil {
		out.Warn = func(w supervise.Warning) {
			o.Warn(warningOf(w))
			if w.Untold == nil {
				return
			}
			if err := w.Untold.Told(); err != nil {
				o.Warn(Warning{Text: err.Error()})
			}
		}
	}
	return out, nil
}

// refusedText tells of a connection that was refused, or failed.
func refusedText(w *supervise.Warning) string {
	switch {
	case w.Refused == "":
		return ""
	case w.Failed:
		return "failed: " + w.Refused
	}
	return "refused: " + w.Refused
}

func warningOf(w supervise.Warning) Warning {
	out := Warning{Text: w.Text + refusedText(&w), Hint: w.Hint, Gaps: gapsOf(w.Gaps)}
	if u := w.Untold; u != nil {
		out.Earlier = &Earlier{
			Session: u.Session,
			Kept:    u.Kept,
			Lives:   u.Lives,
			Changes: changesOf(u.Changes),
			Err:     u.Err,
		}
	}
	return out
}
