package resolve

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/glob"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/policy"
)

// Verdict answers whether an access is allowed, and why.
type Verdict struct {
	Allowed bool
	Path    string        // what was asked for, canonical; "" for the network
	Rule    *Path         // the rule that allows it, or comes nearest to that; nil for none
	Deny    *DenyPath     // the denial that forbids it; nil for none
	Origin  policy.Origin // where the deciding rule was written; zero if there is none
	Reason  string        // the same in words
	Flag    string        // the flag that allows a host; "" for other refusals
}

// Allowed reports whether the command may access a path. If the path does not exist, the
// directory where it would be made counts. A relative path is taken from the working
// directory. Symbolic links and ".." are followed as the kernel does, on the machine as it
// is now.
//
// It answers for the policy, not for the kernel: file permissions, and what package
// sandbox protects by itself, limit access further.
func (r *Resolved) Allowed(name string, a policy.Access) Verdict {
	at, _, _ := r.Look(name)
	v := Verdict{Path: at}
	if v.Path == "" {
		v.Reason = name + " cannot be resolved: a loop of symbolic links, or a directory that may not be searched"
		return v
	}
	if i := slices.IndexFunc(r.Deny, func(d DenyPath) bool { return d.Covers(v.Path) }); i >= 0 {
		v.Deny = &r.Deny[i]
		v.Origin = r.Deny[i].Deny.Origin
		v.Reason = fmt.Sprintf("%s is denied by %q (%s)", v.Path, v.Deny.Deny.Value, v.Origin)
		return v
	}
	var got policy.Access
	for i := range r.Paths {
		p := &r.Paths[i]
		if !p.Covers(v.Path) || p.Access&a == 0 {
			continue
		}
		got |= p.Access & a
		if v.Rule == nil || decides(p, v.Rule, a) {
			v.Rule = p
			v.Origin = p.Rule.Origin
		}
	}
	if v.Rule == nil {
		v.Reason = fmt.Sprintf("no rule allows %s %s", accessWords(a), v.Path)
		return v
	}
	v.Allowed = got == a
	rule := fmt.Sprintf("%q (%s)", v.Rule.Access.String()+" "+v.Rule.Rule.Path, v.Origin)
	v.Reason = fmt.Sprintf("%s is allowed by %s", v.Path, rule)
	if !v.Allowed {
		lacks := strings.TrimSuffix(accessWords(a&^got), " to")
		v.Reason = fmt.Sprintf("%s allows %s %s, not %s", rule, accessWords(got), v.Path, lacks)
	}
	return v
}

// decides reports whether rule p decides rather than q: it allows all of what is asked for,
// or its path is nearer.
func decides(p, q *Path, a policy.Access) bool {
	if all := p.Access&a == a; all != (q.Access&a == a) {
		return all
	}
	return len(p.Path) > len(q.Path)
}

// accessWords returns an access in words.
func accessWords(a policy.Access) string {
	var words []string
	for i, word := range []string{"reading", "writing to", "executing"} {
		if a&(policy.Read<<i) != 0 {
			words = append(words, word)
		}
	}
	return strings.Join(words, " and ")
}

// Look resolves a name as the command would, as Allowed does. It returns the canonical
// path ("" if it can't be resolved), the Stat of the file, and whether the file exists.
func (r *Resolved) Look(name string) (p string, st host.Stat, exists bool) {
	if rest, ok := strings.CutPrefix(name, "~"); ok && r.Home != "" && (rest == "" || rest[0] == '/') {
		name = r.Home + rest
	}
	if !path.IsAbs(name) {
		name = r.Dir + "/" + name
	}
	pl, err := r.host.Spelled(name)
	if err != nil {
		return "", host.Stat{}, false
	}
	made := func(q Path) bool { return q.ID == host.FileID{} && host.Within(q.Path, pl.Path) }
	if pl.Gone != "" && slices.ContainsFunc(r.Paths, made) {
		return pl.Path, host.Stat{Mode: fs.ModeDir}, true // see AssumeMade
	}
	return pl.Path, pl.Stat, pl.Gone == ""
}

// Covers reports whether the rule applies to an absolute, canonical path: its own, or one
// below it if it is a directory.
func (p *Path) Covers(name string) bool {
	return name == p.Path || p.Mode.IsDir() && host.Within(name, p.Path)
}

// Covers reports whether the denial applies to an absolute, canonical path: one that it
// describes, or one below. A glob that can't be parsed covers everything.
func (d *DenyPath) Covers(name string) bool {
	if !d.Glob {
		return host.Within(name, d.Pattern)
	}
	g, err := glob.Parse(d.Pattern)
	return err != nil || g.Match(name)
}

// Connect reports whether the command may connect to a TCP port of a host: a name or an address.
// The host counts only if the network is limited to hosts.
func (r *Resolved) Connect(host string, port uint16) Verdict {
	if r.Net.Mode == NetHosts {
		return r.Net.host(host, port)
	}
	return r.Net.port(port, r.Net.ConnectTCP, "connect")
}

// Bind reports whether the command may listen on a TCP port.
func (r *Resolved) Bind(port uint16) Verdict { return r.Net.port(port, r.Net.BindTCP, "listen") }

func (n *ResolvedNet) port(port uint16, list []policy.Port, verb string) Verdict {
	switch n.Mode {
	case NetOpen:
		return Verdict{Allowed: true, Origin: n.From, Reason: fmt.Sprintf("the network is open (%s)", n.From)}
	case NetNone:
		return Verdict{Origin: n.From, Reason: fmt.Sprintf("there is no network (%s)", n.From)}
	}
	at := slices.IndexFunc(list, func(p policy.Port) bool { return p.Number == port })
	switch {
	case at < 0 && n.Mode == NetHosts: // to listen
		reason := fmt.Sprintf("only the session itself reaches its servers (%s)", n.From)
		return Verdict{Origin: n.From, Reason: reason}
	case at < 0:
		reason := fmt.Sprintf("only listed TCP ports may be used to %s (%s), not %d", verb, n.From, port)
		return Verdict{Origin: n.From, Reason: reason}
	}
	from := list[at].Origin
	reason := fmt.Sprintf("%s: TCP port %d may be used to %s", from, port, verb)
	return Verdict{Allowed: true, Origin: from, Reason: reason}
}

// host answers for a host that the command connects to by name or address.
func (n *ResolvedNet) host(host string, port uint16) Verdict {
	got := n.Hosts.Rules.Decide(rule.Target(host, port))
	return n.Says(&got)
}

// Says returns a verdict about a host with the place where it was written.
func (n *ResolvedNet) Says(got *rule.Verdict) Verdict {
	switch {
	case got.Denial != nil:
		from := originOf(n.Hosts.Denied, got.Denial)
		return Verdict{Origin: from, Reason: fmt.Sprintf("%s (%s)", got.Text, from)}
	case !got.Allowed():
		return Verdict{Origin: n.From, Reason: fmt.Sprintf("%s (%s)", got.Text, n.From), Flag: got.Flag}
	}
	from := originOf(n.Hosts.Allowed, got.Rule)
	reason := fmt.Sprintf("%s is allowed by %q (%s)", got.Where(), got.Rule.String(), from)
	return Verdict{Allowed: true, Origin: from, Reason: reason}
}

// originOf returns where a rule of a list was written. Of several that say the same the last one counts.
func originOf(list []Host, r *rule.Rule) policy.Origin {
	for _, h := range slices.Backward(list) {
		if h.Rule == *r {
			return h.Origin
		}
	}
	return policy.Origin{}
}

// Lists reports whether a list of ports has a port.
func Lists(ports []policy.Port, number uint16) bool {
	return slices.ContainsFunc(ports, func(p policy.Port) bool { return p.Number == number })
}
