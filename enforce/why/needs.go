package why

import (
	"path"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/learn"
)

// Needs is what was refused as package learn takes it: files, ports and sockets that
// a rule could be for.
func Needs(plan *enforce.Plan, got *enforce.Refusals) []learn.Need {
	var out []learn.Need
	r := plan.Policy
	for i := range got.List {
		x := &got.List[i]
		a, raw := &x.Act, &x.Refusal.Answer
		if x.Ordinary || raw.Verdict != enforce.Refused || raw.By == "seccomp" || raw.Mount != nil && x.Answer.Secret == "" && x.Answer.Origin.Source == "" {
			continue
		}
		n := learn.Need{Path: a.Path, Dir: a.Mode.IsDir(), Port: a.Port, Access: policy.Write}
		add := func(n learn.Need) {
			if n.Path != "" && n.Path[0] != '/' { // a pipe, or a file that was removed
				return
			}
			if r.TempDir == "" || !policy.Within(n.Path, r.TempDir) {
				n.Harmless = harmless(r.Home, &Entry{Path: n.Path, Verb: a.Verb()})
				out = append(out, n)
			}
		}
		switch a.Op {
		case enforce.ActSignal, enforce.ActTrace, enforce.ActCall, enforce.ActIoctl:
			continue
		case enforce.ActConnect:
			n.Access, n.Socket = 0, a.Path != ""
			if a.Path == "" && a.Port == 0 {
				continue // an abstract socket
			}
		case enforce.ActBind:
			if n.Bind, n.Change = a.Path == "", a.Path != ""; n.Bind {
				n.Access = 0
			}
		case enforce.ActRename, enforce.ActExchange, enforce.ActLink:
			if raw.Gains != 0 {
				add(learn.Need{Path: path.Dir(a.Path), Dir: true, Access: policy.Read | policy.Write | policy.Exec})
				continue
			}
			for _, p := range []string{a.Path, a.To} {
				if !r.Allowed(path.Dir(p), policy.Write).Allowed && (a.Op != enforce.ActLink || p == a.To) {
					add(learn.Need{Path: p, Dir: n.Dir, Access: policy.Write, Change: true})
				}
			}
			continue
		case enforce.ActExec:
			n.Access = policy.Read | policy.Exec
		case enforce.ActMake, enforce.ActRemove:
			n.Change = true
		case enforce.ActTempFile:
			n.Path, n.Dir, n.Change = path.Join(a.Path, "file"), false, true
		case enforce.ActOpen:
			n.Change = a.Missing && a.Flags&enforce.ActCreat != 0
			if a.Flags&^enforce.ActRead == 0 {
				n.Access = policy.Read
			}
		}
		add(n)
	}
	return out
}
