package learn

import (
	"fmt"
	"io/fs"
	"path"

	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// Open returns what to type so that a command may use a path as access says, or why
// nothing is proposed. A socket is for connecting to. A missing path is to be made.
//
// All that zsbx proposes for one path comes from here, for example for a file that a
// command did not see. A hint is printed with Hint.Typed.
func Open(r *resolve.Resolved, name string, a policy.Access) (h Hint, why string) {
	_, _, exists := r.Look(name)
	if !exists && a&policy.Write == 0 {
		return Hint{}, name + " does not exist" // a rule for it would be an error
	}
	return Ask(r, NeedOf(r, name, a))
}

// Settings returns what to type so that a program can read its own settings, also if they hold a
// login: the user asked for that program, and the hint says so.
func Settings(r *resolve.Resolved, name string) Hint {
	n := NeedOf(r, name, policy.Read)
	h := (&Proposal{Need: n}).Hint(r)
	switch {
	case r.Secret(n.Path) == "":
	case n.Dir:
		h.GivesUp = "what opens it opens all in it, keys and logins too"
		if entries, err := r.Host().ReadDir(n.Path, -1); err == nil {
			h.GivesUp += fmt.Sprintf(" (entries: %d)", len(entries))
		}
	default:
		h.GivesUp = "it may hold a login"
	}
	return h
}

// NeedOf returns what a command needs to use a path, as it is written on a command line.
func NeedOf(r *resolve.Resolved, name string, a policy.Access) Need {
	at, st, exists := r.Look(name)
	if st.Mode.Type() == fs.ModeSocket {
		return Need{Path: at, Key: "net.unix"}
	}
	return Need{Path: at, Access: a, Dir: st.Mode.IsDir(), Change: !exists && a&policy.Write != 0}
}

// Ask returns what to type so that all needs are met, or why nothing is proposed: a part
// of a hint would not help.
func Ask(r *resolve.Resolved, needs ...Need) (h Hint, why string) {
	rules, left := Rules(needs, r)
	for _, n := range left {
		return Hint{}, n.Why
	}
	return joined(r, rules), ""
}

// Keep returns what to type so that directories which a command wrote in a private home
// are kept the next time. Those for which nothing is proposed are left out. The user asked
// for nothing, so Propose decides.
func Keep(r *resolve.Resolved, dirs []string) Hint {
	if r.Host().Lstat == nil {
		return Hint{}
	}
	p := newProposer(r, false)
	var needs []Need
	for _, dir := range dirs {
		_, _, exists := r.Look(dir)
		n := Need{Path: dir, Access: policy.Read | policy.Write | policy.Exec, Dir: true, Change: !exists}
		if p.refuses(&n) == "" {
			needs = append(needs, n)
		}
	}
	return joined(r, p.rules(needs))
}

// Program returns what to type so that a program can be executed: a rule for its
// directory, which often has other files that it needs, or else for the program alone.
func Program(r *resolve.Resolved, file string) (h Hint, why string) {
	if r.Host().Lstat == nil {
		return Hint{}, "it can't be looked at"
	}
	p := newProposer(r, true)
	dir := path.Dir(file)
	need := Need{Path: file, Access: policy.Read | policy.Exec}
	if why := p.refuses(&need); why != "" {
		return Hint{}, why
	}
	if p.sensible(dir, need.Access, false) {
		need = Need{Path: dir, Access: need.Access, Dir: true}
	}
	return (&Proposal{Need: need}).Hint(r), ""
}

// joined returns proposals as one hint.
func joined(r *resolve.Resolved, rules []Proposal) (h Hint) {
	for i := range rules {
		if i == 0 {
			h = rules[i].Hint(r)
		} else {
			h = h.And(rules[i].Hint(r))
		}
	}
	return h
}
