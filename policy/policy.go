package policy

import (
	"fmt"
	"strings"

	"github.com/zsbx/zsbx/internal/syntax"
)

// Access is what a rule allows below a path.
type Access uint8

// The rights of a rule. Write is everything that changes a file or a
// directory: writing, truncating, creating, removing, renaming.
const (
	Read Access = 1 << iota
	Write
	Exec
)

// String names the access with the words of the command line.
func (a Access) String() string {
	switch a {
	case Read:
		return "ro"
	case Read | Exec:
		return "rox"
	case Read | Write:
		return "rw_noexec"
	case Read | Write | Exec:
		return "rw"
	}
	return fmt.Sprintf("access(%#x)", uint8(a))
}

// Origin says where a rule or a setting was written, so that every message
// about it can name the place.
type Origin struct {
	Source string `json:"source"`           // "--rw", a file's name, "preset rust", "baseline", "zsbx" (zsbx's own)
	Line   int    `json:"line,omitempty"`   // 1-based; 0 if the source has no lines
	Column int    `json:"column,omitempty"` // 1-based, in characters; 0 if the source has no lines
}

// String returns "file:line:column", or only the source if it has no lines.
func (o Origin) String() string {
	if o.Line == 0 {
		return o.Source
	}
	return fmt.Sprintf("%s:%d:%d", o.Source, o.Line, o.Column)
}

// BuiltIn reports whether a rule is from the baseline or a preset.
func (o Origin) BuiltIn() bool {
	return o.Source == "baseline" || strings.HasPrefix(o.Source, "preset ")
}

// Rule allows Access on Path and on everything below it.
type Rule struct {
	Path     string // as written: "~", ".", "cwd" and "$VAR" are expanded for the machine
	Access   Access
	Optional bool // may be missing on this machine: baseline, presets, --ignore-missing
	Create   bool // a missing directory is made: caches of presets, --create-missing
	Data     bool // no symbolic link can be made there: caches of presets that programs outside write to
	Origin   Origin
}

// Named is a value with its origin: a preset's name, a variable, the path of a Unix socket, a
// denial. As a single setting, an empty Value means unset.
type Named struct {
	Name     string // of a variable that is set, or a list of words; marks of a host in Put; "" elsewhere
	Value    string
	Optional bool // a socket that may be missing, as with Rule.Optional
	Create   bool // as with Rule.Create
	Origin   Origin
}

// Port is a TCP port, 1 to 65535.
type Port struct {
	Number uint16
	Origin Origin
}

// Policy is what was asked for: the content of a policy file, of a preset or of the
// command line. It is pure data, the same on every system. Merge adds up policies, and
// package sandbox runs commands under the sum. The zero value asks for nothing.
type Policy struct {
	Presets []Named
	FS      FS
	Net     Net
	Env     Env
	Limits  Limits
	Closed  []Closed // presets only
	Guard   Guard
	Audit   Audit
	Private Private

	// Linux and MacOS have the same tables again. The one for the machine's
	// system counts over the rest: lists add up, single values override.
	Linux, MacOS *Policy
}

// FS has the file-system rules.
type FS struct {
	Rules []Rule // ro, rox, rw and rw_noexec, in the order they were written

	// Deny takes away all access to what a path names, or a glob in which "**" crosses
	// directories. Denials outrank every Rule.
	Deny []Named

	// Writes says where files are written: "direct", the default, or "try", into a layer over each
	// writable directory. What is in the layers becomes real when the user applies it.
	Writes Named

	Cache  []CacheEntry // presets only
	System System
}

// CacheEntry is a symbolic link in the project's own cache that leads to a shared one,
// or a copy there of a file outside.
type CacheEntry struct {
	Name string // its name below the project's own cache
	To   string // a path as in Rule.Path
	Copy bool
}

// Closed is a settings file that programs read and no preset opens, because it may
// contain a password.
type Closed struct {
	Path     string   // as in Rule.Path; "../x" is x in any directory above the working directory
	Commands []string // base names of the programs that read it
	Includes bool     // a configuration of git, which names others
}

// System replaces categories of the built-in baseline. A nil list keeps the
// baseline's; an empty list that is not nil empties the category.
type System struct {
	Executable []Rule // read and execute
	ReadOnly   []Rule // read
	ReadWrite  []Rule // read and write: devices
}

// The values of Private.
const (
	wordPrivate = "private"
	wordShared  = "shared"
)

// The values of FS.Writes.
const (
	wordTry    = "try"
	wordDirect = "direct"
)

// Private says what the command does not share with the user's other programs. By default
// all is "shared".
type Private struct {
	// Home, [fs] home, is the home directory. If it is private, what the policy allows
	// of it is there, and the rest is empty, writable, and gone after the session.
	Home Named
	// Pids, [process] pids, are process ids. If they are private, the command sees only
	// the session's own processes (pid_namespaces(7)).
	Pids Named
}

// Is reports whether a value of Private is "private".
func (n *Named) Is() bool { return n.Value == wordPrivate }

// Guard says which command lines are refused before anything runs. It is advice:
// early, readable errors. docs/guard-audit-import.md names the built-in lists. The check is
// made before a command starts.
type Guard struct {
	Off   bool    // flags only: what weaker policies switched on is off
	Lists []Named // names of the lists that are on
	Words []Named // by the name of a list: a command's name and arguments, globs as in path.Match
}

// Net has the network rules.
type Net struct {
	Allow      Named   // "false": no network but the lists below and, on Linux, own servers; or "true"
	ConnectTCP []Port  // when not nil, TCP connections to these ports only, and no other network
	BindTCP    []Port  // when not nil, TCP listening on these ports only, and no other network
	Unix       []Named // paths of Unix sockets outside the session that may be connected to

	// Hosts, when not nil, are the hosts that may be connected to, and no other network but the
	// session's own servers.
	Hosts     []Host
	DenyHosts []Named // HOST[:PORT], outranks Hosts
	DenyBy    Named   // [net] deny: "error", the default, or "nxdomain": a name that is refused does not exist
}

// Host allows connections to a host.
type Host struct {
	Rule    string // HOST[:PORT][/tls|/http|/tcp]
	Private bool   // the addresses of its name may be private
	ECH     bool   // a TLS handshake with it may have an encrypted one in it
	Origin  Origin
}

// The environment modes say which of the caller's variables reach the command.
const (
	EnvScrubbed  = "scrubbed"  // the short list that programs need: the default
	EnvSanitized = "sanitized" // all except what looks like a secret or controls a loader
	EnvInherit   = "inherit"   // all
	EnvVars      = "vars"      // those of Env.Allow and Env.Set, and nothing else
)

// Env has the environment rules.
type Env struct {
	Mode  Named
	Allow []Named // names or globs, let through in every mode
	Set   []Named // variables that get a value
}

// Limits bound a run.
type Limits struct {
	Timeout   Limit // in nanoseconds: the command is ended after that time; exit status 124
	MaxOutput Limit // bytes of stdout and stderr together

	// Memory is how many bytes all processes of the session may use together: their
	// own, files in memory, and what the kernel keeps for them (cgroups(7)).
	Memory Limit
	Pids   Limit // processes and threads at a time
	CPU    Limit // thousandths of one processor's time
}

// Limit is one limit. The zero value is not set, and 0 with an origin lifts an earlier one.
type Limit struct {
	Value int64
	From  Origin
}

// Audit asks for a log of what ran, which a run writes. There is a log if any
// field is set. A field is set if its Value is not "".
type Audit struct {
	Dir      Named // as in Rule.Path; by default in zsbx's own directory
	Keep     Named // how many days files are kept, "0" for ever; by default 90
	Required Named // "true": no command runs without its line
}

// ThisSystem returns the name that policies use for this system, for Baseline.
func ThisSystem() string { return syntax.ThisSystem() }
