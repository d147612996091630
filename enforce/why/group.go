package why

import (
	"fmt"
	"path"
	"strings"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/policy"
)

// grouper makes entries: refusals that one rule would allow are one.
type grouper struct {
	plan  *enforce.Plan
	home  string
	by    map[string]*Entry
	order []*Entry
	under map[string]map[string]bool // by anchor, the paths that were refused there
}

// rules reports whether a rule for a directory would allow it.
func (g *grouper) rules(x *enforce.Refusal) bool {
	switch x.Act.Verb() {
	case "create", "write", "remove", "metadata", "read", "list":
		return !x.Ordinary && x.Answer.Hint.Table == "fs" && x.Act.Op != enforce.ActCall
	}
	return false
}

// note notes that a path was refused where others may be.
func (g *grouper) note(x *enforce.Refusal) {
	for _, at := range g.wider(x.Act.Path) {
		if g.under[at] == nil {
			g.under[at] = make(map[string]bool)
		}
		g.under[at][x.Act.Path] = true
	}
}

// wider are the places that a rule may be for, the widest first.
func (g *grouper) wider(p string) []string { return []string{anchor(g.home, p), path.Dir(p)} }

// many is how many refused paths make a rule for what they have in common.
const many = 3

// place is what a rule for a refusal would be for: the path, the directory that a
// file is made in, or what many have in common.
func (g *grouper) place(x *enforce.Refusal, acc policy.Access) string {
	p := x.Act.Path
	if v := x.Act.Verb(); v == "create" || v == "remove" {
		p = path.Dir(p)
	}
	for _, at := range g.wider(x.Act.Path) {
		if len(g.under[at]) < many || !policy.Within(p, at) || policy.Within(g.plan.Policy.Dir, at) {
			continue
		}
		if h, _ := g.plan.HintFor(at, acc); h.Table != "" {
			return at
		}
	}
	return p
}

func (g *grouper) add(x *enforce.Refusal) {
	verb := x.Act.Verb()
	subject, to := Subject(x), x.Act.To
	key := strings.Join([]string{verb, subject, to, x.Answer.By, x.Errno, x.Via}, "\x00")
	hint, acc := x.Answer.Hint, policy.Write
	if g.rules(x) {
		if verb == "read" || verb == "list" {
			acc = policy.Read
		}
		place := g.place(x, acc)
		hint, _ = g.plan.HintFor(place, acc)
		if hint.Table == "" {
			hint, place = x.Answer.Hint, x.Act.Path
		}
		key = "rule\x00" + place
		if hint.Value == "." {
			key = "rule\x00."
		}
	}
	e := g.by[key]
	if e == nil {
		e = &Entry{Verb: verb, Path: subject, To: to, Errno: x.Errno, By: x.Answer.By, Program: x.Program, Pid: x.Pid, Proved: true,
			Reason: x.Answer.Reason, Via: x.Via, Origin: x.Answer.Origin, Hint: hint, Secret: x.Answer.Secret != "", acc: acc,
			seen: make(map[string]bool), left: x.Left}
		e.apart = x.Errno == "EXDEV" && x.Answer.By == "mounts"
		if x.Unknown() {
			e.By, e.Reason = "unknown", "neither the policy nor file permissions say so: please report it"
		}
		g.by[key] = e
		g.order = append(g.order, e)
	}
	if acc == policy.Write && e.acc == policy.Read { // a rule for both is one to write
		e.Verb, e.Errno, e.Path, e.Reason, e.acc, e.Hint = verb, x.Errno, subject, x.Answer.Reason, acc, hint
	}
	e.Count += x.Count
	e.seen[x.Act.Path] = true
	e.Proved = e.Proved && x.Proved
	e.left, e.when = min(e.left, x.Left), max(e.when, x.When)
}

// Subject is what an act is about, in a word.
func Subject(x *enforce.Refusal) string {
	a := &x.Act
	switch {
	case a.Op == enforce.ActSignal || a.Op == enforce.ActTrace && a.Path == "":
		return "process " + a.Name
	case a.Op == enforce.ActCall:
		return call(a)
	case a.Path != "":
		return a.Path
	case a.Name != "":
		return "@" + a.Name
	}
	return fmt.Sprintf("port %d (tcp)", a.Port)
}

// call names a system call, and of sockets which.
func call(a *enforce.Act) string {
	if (a.Name != "socket" && a.Name != "socketpair") || len(a.Args) < 2 {
		return a.Name
	}
	family, ok := map[uint64]string{1: "AF_UNIX", 2: "AF_INET", 10: "AF_INET6", 16: "AF_NETLINK", 17: "AF_PACKET", 38: "AF_ALG", 40: "AF_VSOCK"}[a.Args[0]&0xffffffff]
	if !ok {
		family = fmt.Sprint(uint32(a.Args[0]))
	}
	kind := map[uint64]string{1: "SOCK_STREAM", 2: "SOCK_DGRAM", 3: "SOCK_RAW", 5: "SOCK_SEQPACKET"}[a.Args[1]&0xf]
	return fmt.Sprintf("%s(%s, %s)", a.Name, family, kind)
}

// anchor is the widest place that a rule may be for: a program's own directory in the
// home directory, or one two levels below the root.
func anchor(home, p string) string {
	base, rest, levels := "", p, 2
	if home != "" && home != "/" && policy.Within(p, home) {
		base, rest, levels = home, p[len(home):], 1
		for _, shared := range []string{"/.cache/", "/.config/", "/.local/share/", "/.local/state/", "/.local/lib/", "/Library/Caches/"} {
			if strings.HasPrefix(rest, shared) {
				levels = strings.Count(shared, "/")
			}
		}
	}
	parts := strings.SplitN(strings.TrimPrefix(rest, "/"), "/", levels+1)
	return base + "/" + strings.Join(parts[:min(len(parts), levels)], "/")
}

// harmless says why programs go on without what was refused, or "".
func harmless(homeDir string, e *Entry) string {
	if e.apart {
		return "programs copy where they can't rename"
	}
	for line := range strings.Lines(knownFile) {
		at, why, ok := strings.Cut(strings.TrimSpace(line), " ")
		if rest, home := strings.CutPrefix(at, "~"); home {
			at = homeDir + rest
		}
		if dir, any := strings.CutPrefix(at, "**"); ok && (any && strings.Contains(e.Path+"/", dir+"/") || policy.Within(e.Path, at)) {
			return "usually harmless: " + why
		}
	}
	if e.Verb == "call" && strings.Contains(e.Path, "AF_NETLINK") {
		return "usually harmless: programs go on without"
	}
	return ""
}
