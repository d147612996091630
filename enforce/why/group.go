package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/internal/answer"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/learn"
)

// Needs is what was refused as package learn takes it: files, ports and sockets that
// a rule could be for.
func Needs(plan *enforce.Plan, got *enforce.Refusals) (all []learn.Need) {
	for i := range got.List {
		x := &got.List[i]
		if x.Ordinary {
			continue
		}
		for _, n := range x.Answer.Needs {
			n.Harmless = harmless(plan.Policy.Home, x.Act.Verb(), n.Path) != ""
			all = append(all, n)
		}
	}
	return all
}

// apart reports whether a rename failed only since its ends are mounts of their own.
func apart(x *enforce.Refusal) bool { return x.Errno == "EXDEV" && x.Answer.By == "mounts" }

// narrowest is the rule for what was refused, nil for none: refusals that one rule would
// allow are one entry.
func narrowest(rules []learn.Proposal, x *enforce.Refusal) (best *learn.Proposal) {
	if len(x.Answer.Needs) == 0 || apart(x) { // it would hide, as harmless, what is refused to the copying that follows
		return nil
	}
	for i := range rules {
		if q := &rules[i]; q.Covers(&x.Answer.Needs[0]) && (best == nil || len(q.Path) > len(best.Path)) {
			best = q
		}
	}
	return best
}

// add has an entry tell of one refusal more, for which q is the rule. It shows the one
// that tells most.
func (e *Entry) add(r *policy.Resolved, x *enforce.Refusal, q *learn.Proposal) {
	if weight(x.Act.Verb()) > weight(e.Verb) {
		e.Verb, e.Path, e.To, e.Errno, e.Via = x.Act.Verb(), subject(x), x.Act.To, x.Errno, x.Via
		e.Program, e.Pid = x.Program, x.Pid
		e.By, e.Reason, e.Origin = x.Answer.By, x.Answer.Reason, x.Answer.Origin
		if e.Harmless = harmless(r.Home, e.Verb, e.Path); apart(x) {
			e.Harmless = "programs copy where they can't rename"
		}
		if x.Unknown() {
			e.By, e.Reason = "unknown", "neither the policy nor file permissions say so: please report it"
		}
	}
	hint := x.Answer.Hint
	if q != nil {
		hint = q.Hint(r)
	}
	if hint.Create || e.Hint == (learn.Hint{}) {
		e.Hint = hint
	}
	e.Secret = q == nil && x.Answer.Secret != ""
	e.seen[x.Act.Path] = true
	e.Count, e.Paths, e.Proved = e.Count+x.Count, len(e.seen), e.Proved && x.Proved
	e.left, e.when = min(e.left, x.Left), max(e.when, x.When)
}

// weight is how much an operation's being refused tells of a failure.
func weight(verb string) float64 {
	switch verb {
	case "":
		return 0
	case "exec":
		return 60
	case "connect", "bind":
		return 50
	case "read", "list":
		return 30
	case "call":
		return 10
	}
	if writes(verb) {
		return 40
	}
	return 20
}

func writes(verb string) bool {
	return slices.Contains([]string{"create", "write", "remove", "rename", "link"}, verb)
}

// subject is what an act is about, in a word.
func subject(x *enforce.Refusal) string {
	a := &x.Act
	switch {
	case a.Op == answer.Signal || a.Op == answer.Trace && a.Path == "":
		return "process " + a.Name
	case a.Op == answer.Call:
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
	if a.Name != "socket" && a.Name != "socketpair" {
		return a.Name
	}
	family, kind := uint32(a.Args[0]), a.Args[1]&0xf
	known := map[uint32]string{1: "AF_UNIX", 2: "AF_INET", 10: "AF_INET6", 16: "AF_NETLINK", 17: "AF_PACKET", 38: "AF_ALG", 40: "AF_VSOCK"}
	types := [6]string{1: "SOCK_STREAM", 2: "SOCK_DGRAM", 3: "SOCK_RAW", 5: "SOCK_SEQPACKET"}
	return fmt.Sprintf("%s(%s, %s)", a.Name, cmp.Or(known[family], fmt.Sprint(family)), types[kind%6])
}

// harmless says why programs go on without what was refused, or "".
func harmless(homeDir, verb, about string) string {
	for line := range strings.Lines(knownFile) {
		at, why, ok := strings.Cut(strings.TrimSpace(line), " ")
		if at == "read" {
			if writes(verb) {
				continue
			}
			at, why, ok = strings.Cut(why, " ")
		}
		if rest, home := strings.CutPrefix(at, "~"); home {
			at = homeDir + rest
		}
		if dir, any := strings.CutPrefix(at, "**"); ok && (any && strings.Contains(about+"/", dir+"/") || policy.Within(about, at)) {
			return "usually harmless: " + why
		}
	}
	if verb == "call" && strings.Contains(about, "AF_NETLINK") {
		return "usually harmless: programs go on without"
	}
	return ""
}
