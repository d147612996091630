package resolve

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/glob"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/syntax"
	"github.com/zsbx/zsbx/policy"
)

// unproved is a git directory to which .git of a working tree leads, but which does not say
// that it belongs to that tree.
type unproved struct {
	from   string        // .git, or what leads there from it
	dir    string        // canonical
	owner  string        // what it belongs to, as far as it says; "" for nothing
	access policy.Access // what the working tree has
}

// Short writes a canonical path as in a rule: relative to the working directory or the
// home directory, if it is below one.
func (r *Resolved) Short(p string) string {
	switch {
	case p == r.Dir:
		return "."
	case r.Dir != "/" && host.Within(p, r.Dir):
		p = "./" + p[len(r.Dir)+1:]
	case r.Home != "" && r.Home != "/" && p != r.Home && host.Within(p, r.Home):
		p = "~" + p[len(r.Home):]
	}
	return strings.ReplaceAll(p, "$", "$$")
}

// Resolved is a policy for one machine: what the user is shown, and what internal/enforce
// turns into kernel rules.
type Resolved struct {
	OS      string
	Dir     string
	Home    string
	TempDir string

	// RealHome is Home without symbolic links, as the kernel compares it, or Home
	// if it can't be resolved. It is only for macOS, and "" elsewhere.
	RealHome string

	Paths   []Path // what is allowed, in the order of merging
	Deny    []DenyPath
	Skipped []Skip // optional rules that name nothing on this machine
	Create  []Path // missing directories of rules with Create: made before a run, then resolved again

	// Cache is the project's own cache, "" for none. CacheLinks are made in it before a
	// run, each with the absolute path that it leads to or is copied from.
	Cache      string
	CacheLinks []policy.CacheEntry

	Net     ResolvedNet
	Env     []string // the command's environment, NAME=VALUE, sorted by name: see EnvWith
	EnvDrop []string // names of the caller's variables that the command does not get, sorted
	Limits  policy.Limits
	Guard   policy.Guard // as merged
	Private policy.Private
	Writes  policy.Named   // as FS.Writes
	Presets []policy.Named // the presets in use, the detected ones included

	// Warnings are about what was asked for and has no effect, or leads elsewhere. They have
	// no Err.
	Warnings policy.Errors

	closed   []policy.Closed // what programs may miss
	unproved unproved        // what git will miss

	env   policy.Env   // as merged, for Policy
	audit policy.Audit // likewise
	host  view         // where it was resolved; without functions in a Resolved made by hand
}

// AssumeMade treats the directories of Create that will be made as existing, for when
// nothing is run.
func (r *Resolved) AssumeMade(will func(*Path) bool) {
	for i := range r.Create {
		if p := &r.Create[i]; will(p) {
			r.Paths = append(r.Paths, *p)
			same := func(s Skip) bool { return s.Rule.Path == p.Rule.Path && s.Rule.Origin == p.Rule.Origin }
			r.Skipped = slices.DeleteFunc(r.Skipped, same)
		}
	}
}

// Path allows Access on one inode and, if it is a directory, on everything below.
type Path struct {
	Path   string // absolute, without symbolic links, "." or ".."
	Access policy.Access
	Mode   fs.FileMode // type bits only
	ID     host.FileID
	Rule   policy.Rule // as written

	// Written is Rule.Path made absolute, before symbolic links were
	// followed.
	Written string
	// Links are the symbolic links that lead from Written to Path, in the order
	// in which they were followed. The directory of each is canonical.
	Links []string
}

// DenyPath is a resolved denial. Pattern is absolute. If Glob is false, it is a canonical
// path, which need not exist.
type DenyPath struct {
	Pattern string
	Glob    bool
	Deny    policy.Named // as written
	Secret  bool         // not asked for: a place of secrets in a tree that a wide rule opens
}

// Skip is an optional rule that was left out, and why. An optional socket is a rule
// without access.
type Skip struct {
	Rule   policy.Rule
	Reason string
}

// ResolvedNet is the network as the command will see it.
type ResolvedNet struct {
	// Mode is NetOpen (no limit), NetPorts (only the listed TCP ports), NetHosts (only the listed
	// hosts) or NetNone.
	Mode       NetMode
	From       policy.Origin // what decided the mode
	ConnectTCP []policy.Port // only with NetPorts
	BindTCP    []policy.Port // only with NetPorts and NetHosts
	Hosts      Hosts         // only with NetHosts
	Unix       []Path        // sockets outside the session that may be connected to
}

// OwnOnly reports whether the sockets of a command reach its session's own servers only. What it
// reaches outside with NetHosts, it reaches through zsbx.
func (n *ResolvedNet) OwnOnly() bool { return n.Mode == NetNone || n.Mode == NetHosts }

// NetMode says how much of the network is open.
type NetMode string

const (
	NetOpen  NetMode = "open"  // all of it
	NetPorts NetMode = "ports" // the TCP ports that are listed
	NetHosts NetMode = "hosts" // the hosts that are listed, and the session's own servers
	NetNone  NetMode = "none"  // none of it, but for the session's own servers on Linux
)

// Hosts are the hosts that a command may connect to, by name or address.
type Hosts struct {
	Rules    *rule.Set
	Allowed  []Host // in the order in which they were written; one for each host and port
	Denied   []Host // they outrank Allowed
	NXDomain bool   // a name that is not allowed does not exist, instead of being refused at connect(2)
}

// Host is one rule of Hosts.
type Host struct {
	rule.Rule
	Origin policy.Origin
}

// addTo adds the rules to those that a policy has.
func (h *Hosts) addTo(n *policy.Net) {
	n.Hosts = []policy.Host{}
	for i := range h.Allowed {
		a := &h.Allowed[i]
		n.Hosts = append(n.Hosts, policy.Host{Rule: a.String(), Private: a.Private, ECH: a.ECH, Origin: a.Origin})
	}
	for i := range h.Denied {
		d := &h.Denied[i]
		n.DenyHosts = append(n.DenyHosts, policy.Named{Value: d.String(), Origin: d.Origin})
	}
	if h.NXDomain {
		n.DenyBy = policy.Named{Value: "nxdomain"}
	}
}

// Cache reports whether a path is a cache: a preset's, or the project's own.
func (p *Path) Cache() bool {
	return strings.HasPrefix(p.Rule.Origin.Source, "preset ") || strings.HasPrefix(p.Rule.Path, "$"+cacheVariable)
}

// Tries reports whether what the command writes goes to layers.
func (r *Resolved) Tries() bool { return r.Writes.Value == "try" }

// Host returns the machine for which it was resolved.
func (r *Resolved) Host() *host.Host { return &r.host.Host }

// Policy turns the Resolved into a policy with canonical paths. It includes the rules of
// the baseline and of presets, and its system categories are empty. It does not name the
// private temporary directory, which belongs to one run. Resolved on the same machine, it
// gives the same result except for what no file can express: links can be made in a
// preset's caches of data.
func (r *Resolved) Policy() *policy.Policy {
	p := &policy.Policy{Env: r.env, Limits: r.Limits, Private: r.Private, Guard: r.Guard, Audit: r.audit}
	p.FS.Writes = r.Writes
	p.FS.System = policy.System{Executable: []policy.Rule{}, ReadOnly: []policy.Rule{}, ReadWrite: []policy.Rule{}}
	for i := range r.Paths {
		if from := r.Paths[i].Rule.Origin; from.Source != sourceTemp {
			create := r.Paths[i].Rule.Create
			p.FS.Rules = append(p.FS.Rules, policy.Rule{
				Path:     syntax.Literal(r.Paths[i].Path),
				Access:   r.Paths[i].Access,
				Optional: create,
				Create:   create,
				Origin:   from,
			})
		}
	}
	for _, d := range r.Deny {
		pattern := d.Pattern
		if !d.Glob {
			pattern = glob.QuoteMeta(pattern)
		}
		p.FS.Deny = append(p.FS.Deny, policy.Named{Value: syntax.Literal(pattern), Origin: d.Deny.Origin})
	}
	if r.Net.Mode == NetPorts {
		p.Net.ConnectTCP = append([]policy.Port{}, r.Net.ConnectTCP...)
		p.Net.BindTCP = append([]policy.Port{}, r.Net.BindTCP...)
	}
	if r.Net.Mode == NetHosts {
		r.Net.Hosts.addTo(&p.Net)
		p.Net.BindTCP = slices.Clone(r.Net.BindTCP)
	}
	if r.Net.From.Source != "default" {
		p.Net.Allow = policy.Named{Value: strconv.FormatBool(r.Net.Mode == NetOpen), Origin: r.Net.From}
	}
	for i := range r.Net.Unix {
		sock := &r.Net.Unix[i]
		p.Net.Unix = append(p.Net.Unix, policy.Named{Value: syntax.Literal(sock.Path), Origin: sock.Rule.Origin})
	}
	return p
}

// builtIn returns the paths of built-in rules, which are few even if the user has many.
func (r *Resolved) builtIn() (all []*Path) {
	for i := range r.Paths {
		if p := &r.Paths[i]; p.Rule.Origin.BuiltIn() {
			all = append(all, p)
		}
	}
	return all
}
