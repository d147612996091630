package policy

import (
	"io/fs"
	"slices"
	"strconv"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/policy/glob"
)

// Host is the machine as Resolve sees it: the only way in which this package
// looks at anything. ThisHost fills it from the running system; tests fill it
// from tables.
type Host struct {
	OS      string   // "linux" or "macos"
	Dir     string   // the command's working directory, absolute and canonical
	Home    string   // the user's home directory; "" when it is not known
	TempDir string   // the session's private temporary directory; "" for none
	Env     []string // the caller's environment, NAME=VALUE

	Lstat    func(path string) (Stat, error)   // as lstat(2)
	Readlink func(path string) (string, error) // as readlink(2)
	ReadDir  func(path string) ([]fs.DirEntry, error)
	// ReadSome lists at most n entries, those that come first in the
	// directory. With nil ReadDir is used.
	ReadSome func(path string, n int) ([]fs.DirEntry, error)
	ReadFile func(path string) ([]byte, error) // small files: git's pointers to its directories

	walker *walker // what one Resolve has seen so far; nil otherwise
	agents string  // what coding agents add to the name of the project's own cache
}

// Stat is what Host.Lstat tells of a file, and FileID which inode that is.
type (
	Stat   = files.Stat
	FileID = files.ID
)

// Resolved is a policy as one machine understands it: what the caller is
// shown, and what package enforce turns into kernel rules.
type Resolved struct {
	OS      string
	Dir     string
	Home    string
	TempDir string

	// RealHome is Home without symbolic links, or Home where nothing is known
	// of it: what the kernel compares. Only on macOS; elsewhere it is "".
	RealHome string

	Paths   []Path // what is allowed, in the order of merging
	Deny    []DenyPath
	Skipped []Skip // optional rules that name nothing on this machine
	Create  []Path // of rules with Create, directories that are missing: made before a run, then resolved again

	// Cache is the project's own cache, "" for none; CacheLinks are to be in it before a
	// run, each with the absolute path that it leads to or comes from.
	Cache      string
	CacheLinks []CacheEntry

	Net     ResolvedNet
	Env     []string // the command's environment, NAME=VALUE, sorted by name
	EnvDrop []string // names of the caller's variables that the command does not get, sorted
	Limits  Limits
	Guard   Guard // as merged
	Private Private
	Presets []Named // the presets in use, the detected ones included

	// Warnings are what was asked for without effect. They have no Err.
	Warnings Errors

	closed    []Closed // what programs may miss
	envOfJava []string // Env with Java's option; nil before NameJavaTemp

	env   Env   // as merged, for Policy
	audit Audit // likewise
	host  Host  // where it was resolved; its functions are nil in one made by hand
}

// AssumeMade takes those directories of Create that will be made for what is there, where
// nothing is run.
func (r *Resolved) AssumeMade(will func(*Path) bool) {
	for i := range r.Create {
		if p := &r.Create[i]; will(p) {
			r.Paths = append(r.Paths, *p)
			r.Skipped = slices.DeleteFunc(r.Skipped, func(s Skip) bool { return s.Rule.Path == p.Rule.Path && s.Rule.Origin == p.Rule.Origin })
		}
	}
}

// Path allows Access on one inode and, when it is a directory, on all below.
type Path struct {
	Path   string // absolute, without symbolic links, "." or ".."
	Access Access
	Mode   fs.FileMode // type bits only
	ID     FileID
	Rule   Rule // as written

	// Written is Rule.Path made absolute, before symbolic links were
	// followed.
	Written string
	// Links are the symbolic links that lead from Written to Path, each
	// with a canonical directory, in the order they were followed.
	Links []string
}

// DenyPath is a resolved denial. Pattern is absolute; when Glob is false it
// is a canonical path, which need not exist.
type DenyPath struct {
	Pattern string
	Glob    bool
	Deny    Named // as written
	Secret  bool  // nobody asked for it: a place of secrets in a tree that a rule opens as a whole
}

// Skip is an optional rule that was left out, and why. An optional socket is
// told as a rule without access.
type Skip struct {
	Rule   Rule
	Reason string
}

// ResolvedNet is the network as the command will see it.
type ResolvedNet struct {
	// Mode is NetOpen (no limit), NetPorts (only the TCP ports listed, all
	// else closed) or NetNone.
	Mode       NetMode
	From       Origin // who decided the mode
	ConnectTCP []Port // only with NetPorts
	BindTCP    []Port // only with NetPorts
	Unix       []Path // sockets outside the session that may be connected to
}

// NetMode says how much of the network is open.
type NetMode string

const (
	NetOpen  NetMode = "open"
	NetPorts NetMode = "ports"
	NetNone  NetMode = "none"
)

// Host is the machine where it was resolved.
func (r *Resolved) Host() *Host { return &r.host }

// Policy writes what was resolved as a policy again, with canonical paths:
// the rules of the baseline and of presets are in it, its system categories
// are empty. It does not name the private temporary directory, which belongs
// to one run. Resolved on the same machine it gives the same result, but for what
// no file can say: in a preset's caches of data, links can be made then.
func (r *Resolved) Policy() *Policy {
	p := &Policy{Env: r.env, Limits: r.Limits, Private: r.Private, Guard: r.Guard, Audit: r.audit}
	for _, rules := range p.system {
		*rules = []Rule{}
	}
	for i := range r.Paths {
		if from := r.Paths[i].Rule.Origin; from.Source != sourceTemp {
			create := r.Paths[i].Rule.Create
			p.FS.Rules = append(p.FS.Rules, Rule{Path: literal(r.Paths[i].Path), Access: r.Paths[i].Access, Optional: create, Create: create, Origin: from})
		}
	}
	for _, d := range r.Deny {
		pattern := d.Pattern
		if !d.Glob {
			pattern = glob.QuoteMeta(pattern)
		}
		p.FS.Deny = append(p.FS.Deny, Named{Value: literal(pattern), Origin: d.Deny.Origin})
	}
	if r.Net.Mode == NetPorts {
		p.Net.ConnectTCP, p.Net.BindTCP = append([]Port{}, r.Net.ConnectTCP...), append([]Port{}, r.Net.BindTCP...)
	}
	if r.Net.From.Source != "default" {
		p.Net.Allow = Named{Value: strconv.FormatBool(r.Net.Mode == NetOpen), Origin: r.Net.From}
	}
	for i := range r.Net.Unix {
		p.Net.Unix = append(p.Net.Unix, Named{Value: literal(r.Net.Unix[i].Path), Origin: r.Net.Unix[i].Rule.Origin})
	}
	return p
}
