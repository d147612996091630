package learn

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/presets"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/policy"
)

// Need is something that a command was refused.
type Need struct {
	Path   string        // canonical; "" for a port or a host
	Access policy.Access // what the command needs there
	Dir    bool          // a directory is there, or would be made
	Change bool          // it would be made or removed: its directory changes

	Key  string // "net.unix", "net.hosts", "net.connect_tcp" or "net.bind_tcp"; "" for a file
	Port uint16 // TCP

	Host    string // a rule for a host, as package rule writes it
	Private bool   // its addresses may be private

	Why string // why programs go on without it; in what is left, why nothing is proposed
}

// Same reports whether two needs are about the same thing, whatever their Why.
func (n Need) Same(o Need) bool {
	o.Why = n.Why
	return n == o
}

// Proposal is a preset, or one rule, which the Need describes.
type Proposal struct {
	Need
	Preset string
	Needs  []Need // what it would allow
}

// Propose makes proposals for what was refused under the policy r: presets, files,
// ports, sockets. Left is what nothing is proposed for. The same needs, in any order,
// give the same proposals in the same order.
func Propose(needs []Need, r *resolve.Resolved) (all []Proposal, left []Need) {
	return newProposer(r, false).propose(needs)
}

// Rules does what Propose does, for a user who asked what would allow something. It also proposes
// a directory that has other things in it, if that directory itself was refused.
func Rules(needs []Need, r *resolve.Resolved) (all []Proposal, left []Need) {
	if len(needs) > 0 && r.Host().Lstat != nil {
		all, left = newProposer(r, true).propose(needs)
	}
	return all, left
}

// proposer is one use of this package: all that it proposes goes through one.
type proposer struct {
	r      *resolve.Resolved
	asked  bool // for Rules
	guard  func(string, policy.Access, bool) string
	others func(string, bool) string // of other projects' programs
	home   string                    // canonical
	tree   string                    // the top of the working directory's repository, or the working directory
	shared []string                  // directories of many programs: never a rule, but what is in them may be
	left   []Need
}

func newProposer(r *resolve.Resolved, asked bool) *proposer {
	h := r.Host()
	home := h.Way(r.Home).Path
	shared := []string{"/tmp", "/var/tmp", "/private", "/dev", "/dev/shm",
		home + "/.cache", home + "/.config", home + "/.local", home + "/Library", home + "/bin"}
	for _, v := range []string{
		"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
	} {
		if d := h.Getenv(v); path.IsAbs(d) {
			shared = append(shared, h.Way(d).Path)
		}
	}
	return &proposer{
		r: r, asked: asked, guard: r.Unwise(), others: r.OtherPrograms(),
		home: home, tree: cmp.Or(h.Repository(r.Dir), r.Dir), shared: shared,
	}
}

func (p *proposer) propose(needs []Need) (out []Proposal, left []Need) {
	byText := func(a, b Need) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
	needs = slices.SortedFunc(slices.Values(needs), byText)
	var files []Need
	var others []Proposal
	for _, n := range slices.Compact(needs) {
		why := p.refuses(&n)
		switch {
		case why != "":
			n.Why = why
			p.left = append(p.left, n)
		case n.Why != "" && !p.asked:
		case n.Key != "":
			others = append(others, Proposal{Need: n, Needs: []Need{n}})
		default:
			files = append(files, n)
		}
	}
	if len(files) > 0 {
		out, files = p.presets(files)
	}
	return slices.Concat(out, p.rules(files), others), p.left
}

// presets proposes presets for what they open, and returns the needs that are left. It
// does not propose a preset that opens secrets, such as an agent's login.
func (p *proposer) presets(needs []Need) (out []Proposal, _ []Need) {
	for _, info := range presets.All() {
		pol, _ := policy.Preset(info.Name) // it is known
		r, err := resolve.Policy(pol, *p.r.Host())
		if err != nil || slices.ContainsFunc(p.r.Presets, func(n policy.Named) bool { return n.Value == info.Name }) {
			continue
		}
		paths := slices.Concat(r.Paths, r.Create)
		if slices.ContainsFunc(paths, func(x resolve.Path) bool { return p.r.Secret(x.Path) != "" }) {
			continue
		}
		q := Proposal{Preset: info.Name}
		needs = slices.DeleteFunc(needs, func(n Need) bool {
			in := slices.ContainsFunc(paths, func(x resolve.Path) bool { return p.opens(&x, n) })
			if in {
				q.Needs = append(q.Needs, n)
			}
			return in
		})
		if q.Needs != nil {
			out = append(out, q)
		}
	}
	return out, needs
}

// opens reports whether a preset's path would open what is needed, or is made with it.
func (p *proposer) opens(x *resolve.Path, n Need) bool {
	if x.Rule.Create && n.Dir && n.Change && host.Within(x.Path, n.Path) && p.narrow(n.Path, n.Access, false) {
		return true
	}
	return x.Covers(n.Path) && n.Access&^x.Access == 0 && (!n.Change || x.Path != n.Path)
}

// unwise returns why a rule should not be proposed, or "". A user who asks also gets rules
// for devices such as /dev/kvm.
func (p *proposer) unwise(at string, a policy.Access, dir bool) string {
	if p.asked && within(at, "/dev") {
		a &^= policy.Write
	}
	return p.guard(at, a, dir)
}

// refuses returns why nothing is proposed, or "".
func (p *proposer) refuses(n *Need) string {
	if n.Host != "" {
		return ""
	}
	if n.Port != 0 {
		if p.r.Net.From.Source == "--no-net" {
			return "the network was closed by --no-net"
		}
		return ""
	}
	if !path.IsAbs(n.Path) || n.Path != path.Clean(n.Path) {
		return "it has no path or port that a rule could name"
	}
	if slices.ContainsFunc(p.r.Deny, func(d resolve.DenyPath) bool { return d.Covers(n.Path) }) {
		return "it is denied"
	}
	if n.Key != "" {
		return p.unwise(n.Path, policy.Read, false)
	}
	if ofSystem(n) {
		return "it belongs to the system, or to everybody"
	}
	return p.refusesFile(n)
}

// ofSystem reports whether a file is the system's, or one that all users share.
func ofSystem(n *Need) bool {
	if n.Path == "/dev" || within(n.Path, "/proc", "/sys", "/dev/shm", "/dev/mqueue") {
		return true
	}
	if n.Change && slices.Contains([]string{"/tmp", "/var/tmp"}, path.Dir(n.Path)) {
		return true
	}
	return n.Access&policy.Write != 0 && within(n.Path,
		"/usr", "/etc", "/opt", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/run", "/var/lib", "/var/run",
		"/Library", "/System")
}

// refusesFile returns why nothing is proposed for a file, or "".
func (p *proposer) refusesFile(n *Need) string {
	a := n.Access
	at := n.Path
	if p.top(*n) != "" {
		a = policy.Read // package enforce protects what must not be written there
	}
	why := p.unwise(n.Path, a, n.Dir)
	if git := p.r.UnprovedGit(); git.Owner != "" && host.Within(n.Path, git.Dir) {
		why = "it belongs to " + git.Owner
	}
	if n.Change {
		at = path.Dir(at)
		why = cmp.Or(why, p.unwise(n.Path, a, false)) // a file may be there by then
	}
	switch {
	case why != "":
		return why
	case a&policy.Write != 0 && !p.asked && p.settings(n):
		return "it may be what a program outside reads when it starts; give the flag if you mean that"
	case p.r.Allowed(at, n.Access).Allowed:
		return "a rule allows it already: no rule can change what refused it"
	}
	return ""
}

// settings reports whether a path is in ~/.config, is a file directly in ~/.cache or the
// like, or is a hidden file in the home directory. No table has all settings by which
// programs run others, or all files there that shells execute.
func (p *proposer) settings(n *Need) bool {
	h := p.r.Host()
	dir := path.Dir(n.Path)
	config := h.ConfigHome()
	return config != "" && within(n.Path, h.Way(config).Path) ||
		!n.Dir && (slices.Contains(p.shared, dir) || dir == p.home && path.Base(n.Path)[0] == '.')
}

func within(p string, dirs ...string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return host.Within(p, d) })
}

// Hint is what would allow something. The zero value is none.
type Hint struct {
	Flags   string         // of run, as a shell takes them
	Policy  *policy.Policy // nil where no policy file can say it
	GivesUp string         // the promise that it gives up, or ""
}

// written returns a path as a policy file in the working directory should have it. A path in the
// repository around that directory is relative, so that it means the same in every clone.
func written(r *resolve.Resolved, p string) string {
	h := r.Host()
	up := ".."
	dir := path.Dir(r.Dir)
	for !host.Within(p, dir) {
		up += "/.."
		dir = path.Dir(dir)
	}
	if h.Lstat == nil || host.Within(p, r.Dir) || dir == "/" || host.Within(r.Home, dir) {
		return r.Short(p)
	}
	if top := h.Repository(r.Dir); top == "" || !host.Within(p, top) {
		return r.Short(p)
	}
	return up + strings.ReplaceAll(strings.TrimPrefix(p, dir), "$", "$$")
}

// Hint returns the proposal as something to type. Paths are written relative to the
// working directory and the home directory of r.
func (q *Proposal) Hint(r *resolve.Resolved) Hint {
	switch {
	case q.Preset != "":
		return NewHint("presets", q.Preset, false)
	case q.Host != "":
		return hostHint(&q.Need)
	case q.Path == "":
		return NewHint(q.Key, strconv.Itoa(int(q.Port)), false)
	}
	h := NewHint(cmp.Or(q.Key, "fs."+(q.Access|policy.Read).String()), written(r, q.Path), q.Dir && q.Change)
	if q.Key == "net.unix" {
		h.GivesUp = "what listens there acts outside for the command"
	}
	return h
}

// hostHint returns the hint for a host.
func hostHint(n *Need) Hint {
	flag := "--allow-host "
	if n.Private {
		flag = "--allow-private-host "
	}
	h := Hint{Flags: flag + shell.Quote(n.Host), Policy: &policy.Policy{}}
	h.Policy.Net.Hosts = []policy.Host{{Rule: n.Host, Private: n.Private}}
	return h
}

const createMissing = "--create-missing "

// NewHint returns the hint for a value of a key of policy files, such as "fs.rw". With
// create the value is a missing directory that is to be made.
func NewHint(key, value string, create bool) Hint {
	h := Hint{Policy: &policy.Policy{}}
	_ = h.Policy.Put(key, policy.Named{Value: value, Create: create}) // only ports can be wrong
	_, name, _ := strings.Cut(key, ".")
	h.Flags = "--" + cmp.Or(strings.ReplaceAll(name, "_", "-"), "preset") + " " + shell.QuotePath(value)
	if create {
		h.Flags = createMissing + h.Flags
	}
	return h
}

// Execute returns the flags that open directories of programs for reading and executing, without
// those that may not be proposed. It asks for no presets, which would take long before a start.
func Execute(r *resolve.Resolved, dirs []string) (h Hint) {
	p := newProposer(r, true)
	for _, dir := range dirs {
		n := Need{Path: dir, Access: policy.Read | policy.Exec, Dir: true}
		if p.refuses(&n) != "" || !p.sensible(dir, n.Access, true) {
			continue
		}
		one := (&Proposal{Need: n}).Hint(r)
		if h.Policy != nil {
			one = h.And(one)
		}
		h = one
	}
	return h
}

// And joins two hints that have a policy.
func (h Hint) And(o Hint) Hint {
	lost := slices.Compact([]string{h.GivesUp, o.GivesUp})
	lost = slices.DeleteFunc(lost, func(s string) bool { return s == "" })
	more := o.Flags
	if strings.Contains(h.Flags, createMissing) {
		more = strings.ReplaceAll(more, createMissing, "")
	}
	return Hint{
		Flags:   h.Flags + " " + more,
		Policy:  policy.Merge(h.Policy, o.Policy),
		GivesUp: strings.Join(lost, "; "),
	}
}

// Typed returns the flags to add to a run that had those of r. The first flag for a file
// ends the default, that the working directory can be used.
func (h Hint) Typed(r *resolve.Resolved) string {
	at := slices.IndexFunc(r.Paths, func(p resolve.Path) bool { return p.Rule.Origin.Source == "default" })
	if at < 0 || h.Policy == nil || len(h.Policy.FS.Rules) == 0 || strings.Trim(h.Policy.FS.Rules[0].Path, "./") == "" {
		return h.Flags
	}
	return "--" + r.Paths[at].Rule.Access.String() + " . " + h.Flags
}

// TOML returns the policy on one line, with each table's name before its keys.
func (h Hint) TOML() string {
	text, _ := policy.Amend(resolve.ProjectFile, nil, h.Policy) // nothing on an error
	oneLine := strings.NewReplacer("[\n  ", "[", ",\n]", "]", "\n  ", " ", "\n", " ")
	return oneLine.Replace(strings.TrimSpace(string(text)))
}

// JSON returns the policy on one line, or nil.
func (h Hint) JSON() json.RawMessage {
	var b bytes.Buffer
	if h.Policy == nil || h.Policy.EncodeJSON(&b) != nil {
		return nil
	}
	return b.Bytes()
}
