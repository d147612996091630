package learn

import (
	"cmp"
	"path"
	"slices"

	"github.com/zsbx/zsbx/policy"
)

// Need is something that a command was refused.
type Need struct {
	Path   string        // canonical; "" for a port
	Access policy.Access // what it takes there
	Dir    bool          // a directory is there, or would be made
	Change bool          // it would be made or removed: its directory changes

	Socket   bool   // a Unix socket at Path is connected to
	Port     uint16 // TCP
	Bind     bool   // to listen on Port
	Harmless string // why programs go on without it, or ""
}

// Proposal is a preset, or one rule: for what the Need has.
type Proposal struct {
	Need
	Preset string
	Create bool   // the directory is made when it is missing
	Needs  []Need // what it would allow
}

// Left is what nothing is proposed for.
type Left struct {
	Need Need
	Why  string
}

// Propose makes proposals for what was refused under the policy r. The same needs, in
// whatever order, give the same proposals in the same order.
func Propose(needs []Need, r *policy.Resolved) ([]Proposal, []Left) {
	return newProposer(r).propose(needs)
}

// Rules are what to tell somebody who asks what would allow something: without presets,
// and also for a directory that holds more than one thing, where that is what was refused.
func Rules(needs []Need, r *policy.Resolved) []Proposal {
	if len(needs) == 0 || r.Host().Lstat == nil {
		return nil
	}
	p := newProposer(r)
	unwise := p.unwise
	p.asked, p.unwise = true, func(at string, a policy.Access, dir bool) string {
		if within(at, "/dev") { // /dev/kvm is for the user to weigh
			a &^= policy.Write
		}
		return unwise(at, a, dir)
	}
	out, _ := p.propose(needs)
	return out
}

// proposer is one use of Propose or Rules.
type proposer struct {
	r      *policy.Resolved
	asked  bool // it is Rules
	unwise func(string, policy.Access, bool) string
	shared []string
	out    []Proposal
	left   []Left
}

func newProposer(r *policy.Resolved) *proposer {
	return &proposer{r: r, unwise: r.Unwise(), shared: shared(r)}
}

func (p *proposer) propose(needs []Need) ([]Proposal, []Left) {
	var files []Need
	for _, n := range distinct(needs) {
		if why := p.refuses(&n); why != "" {
			p.left = append(p.left, Left{n, why})
		} else if n.Port != 0 || n.Socket {
			p.out = append(p.out, Proposal{Need: n, Needs: []Need{n}})
		} else {
			files = append(files, n)
		}
	}
	if !p.asked {
		files = p.presets(files)
	}
	p.rules(p.project(files))
	slices.SortStableFunc(p.out, func(a, b Proposal) int {
		return cmp.Or(cmp.Compare(kind(&a), kind(&b)), cmp.Compare(a.Preset, b.Preset), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Port, b.Port))
	})
	return p.out, p.left
}

// kind orders proposals: presets first, the harmless last.
func kind(p *Proposal) int {
	switch {
	case p.Harmless != "":
		return 9
	case p.Preset != "":
		return 0
	case p.Socket:
		return 2
	case p.Port != 0 && !p.Bind:
		return 3
	case p.Port != 0:
		return 4
	}
	return 1
}

// distinct sorts needs and puts those of one place together.
func distinct(needs []Need) []Need {
	all := slices.Clone(needs)
	slices.SortFunc(all, func(a, b Need) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Port, b.Port), cmp.Compare(bit(a.Bind), bit(b.Bind)),
			cmp.Compare(bit(a.Socket), bit(b.Socket)), cmp.Compare(bit(a.Harmless != ""), bit(b.Harmless != "")), cmp.Compare(a.Harmless, b.Harmless))
	})
	out := all[:0]
	for _, n := range all {
		if i := len(out) - 1; i >= 0 && out[i].Path == n.Path && out[i].Port == n.Port && out[i].Bind == n.Bind && out[i].Socket == n.Socket {
			o := &out[i]
			o.Access |= n.Access
			o.Dir, o.Change = o.Dir || n.Dir, o.Change || n.Change
			continue
		}
		out = append(out, n)
	}
	return out
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// refuses says why nothing is proposed, or "".
func (p *proposer) refuses(n *Need) string {
	switch {
	case n.Port != 0 && p.r.Net.From.Source == "--no-net":
		return "the network was closed by --no-net"
	case n.Bind && n.Port == 0:
		return "no rule is for a port of the kernel's choice"
	case n.Port != 0:
		return ""
	case !path.IsAbs(n.Path) || n.Path != path.Clean(n.Path):
		return "it has no path that a rule could name"
	case n.Socket:
		return p.unwise(n.Path, policy.Read, false)
	}
	return p.refusesFile(n)
}

// refusesFile says why nothing is proposed for a file, or "".
func (p *proposer) refusesFile(n *Need) string {
	write := n.Access&policy.Write != 0
	for i := range p.r.Deny {
		if p.r.Deny[i].Covers(n.Path) {
			return "it is denied"
		}
	}
	switch {
	case n.Path == "/dev", within(n.Path, "/proc", "/sys", "/dev/shm", "/dev/mqueue"):
		return "the kernel is asked and told things there"
	case write && within(n.Path, "/usr", "/etc", "/opt", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/run", "/var/lib", "/var/run", "/Library", "/System"):
		return "the system's own directories are for a package manager to change"
	case n.Change && slices.Contains([]string{"/tmp", "/var/tmp"}, path.Dir(n.Path)):
		return "everybody makes files there: TMPDIR is the command's own (--shared-tmp)"
	}
	acc := n.Access
	if policy.Within(n.Path, p.r.Dir) && p.whole() {
		acc = policy.Read // what may be written there is enforce's care
	}
	if why := p.unwise(n.Path, acc, n.Dir); why != "" {
		return why
	}
	if acc&policy.Write != 0 && !p.asked && p.settings(n) {
		return "it may be what a program outside reads when it starts; give the flag if that is meant"
	}
	at := n.Path
	if n.Change {
		at = path.Dir(at)
		if why := p.unwise(n.Path, acc, false); why != "" { // there may be a file by then
			return why
		}
	}
	if p.r.Allowed(at, n.Access).Allowed && p.r.Allowed(n.Path, n.Access).Allowed {
		return "a rule allows it: what refused it is none that a rule could change"
	}
	return ""
}

// settings reports whether a path lies in ~/.config, or is a file directly in ~/.cache or
// its like, or in the home directory under a hidden name: no table has all settings by
// which programs run others, nor what shells keep there and execute.
func (p *proposer) settings(n *Need) bool {
	h, dir := p.r.Host(), path.Dir(n.Path)
	if config := h.ConfigHome(); config != "" && policy.Within(n.Path, h.Follow(config).Path) {
		return true
	}
	own := slices.Contains(p.shared, dir) && !within(dir, "/tmp", "/var/tmp", "/private", "/dev")
	return !n.Dir && (own || dir == h.Follow(p.r.Home).Path && path.Base(n.Path)[0] == '.')
}

func within(p string, dirs ...string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return policy.Within(p, d) })
}

// Covers reports whether a rule would allow a need. Of a preset it is known by the
// needs that it was proposed for alone.
func (q *Proposal) Covers(n *Need) bool {
	switch {
	case q.Preset != "":
		return slices.ContainsFunc(q.Needs, func(m Need) bool { return m.Path == n.Path && m.Port == n.Port && m.Access|n.Access == m.Access })
	case q.Port != 0 || n.Port != 0:
		return q.Port == n.Port && q.Bind == n.Bind
	case q.Socket != n.Socket:
		return false
	case q.Path == n.Path:
		return q.Socket || n.Access&^q.Access == 0 && (!n.Change || q.Create)
	}
	return q.Dir && policy.Within(n.Path, q.Path) && n.Access&^q.Access == 0
}
