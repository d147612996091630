package seccomp

import (
	"cmp"
	"slices"
)

// dispatch writes the program: a balanced search tree over the system call's number, then one
// block for each rule that looks at arguments, and one for each answer.
//
// When the program is installed, the kernel translates it and runs it once for each number.
// That takes 2 % of a start and grows with the program. Since Linux 5.11 the kernel remembers
// the numbers that are allowed whatever the arguments: these calls then cost nothing.
type dispatch struct {
	writer
	to      [LastSyscall + 1]label // where a rule sends each system call; 0 for none
	answers map[uint32]label
}

func (d *dispatch) answer(action uint32) label {
	if d.answers[action] == 0 {
		d.answers[action] = d.put(bpfReturn, action)
	}
	return d.answers[action]
}

// target returns the label where the calls of a rule go.
func (d *dispatch) target(r *rule) label {
	if len(r.clauses) > 0 && len(r.clauses[0].when) == 0 {
		return d.answer(r.clauses[0].answer)
	}
	return d.block(r.clauses)
}

// The offsets in struct seccomp_data.
const (
	offsetNr   = 0
	offsetArch = 4
	offsetArgs = 16 // six 64-bit words, little-endian on both machines
)

// span sends the system calls from a number up to the next span to a label.
type span struct {
	from uint32
	to   label
}

// head writes what comes before the blocks and the answers. It refuses unknown, newer calls and
// those of x32, which have bit 30 set.
func (d *dispatch) head(arch uint32) {
	kill := d.answer(ActKill)
	unknown := d.answer(RefuseENOSYS)
	allow := d.answer(ActAllow)
	spans := make([]span, 0, 128)
	for nr, to := range d.to {
		to = cmp.Or(to, allow)
		if nr == 0 || to != spans[len(spans)-1].to {
			spans = append(spans, span{uint32(nr), to})
		}
	}
	d.search(append(spans, span{LastSyscall + 1, unknown}))
	tree := d.put(bpfLoad, offsetNr)
	d.branch(bpfEqual, arch, tree, kill)
	d.put(bpfLoad, offsetArch)
}

// search writes the tree over spans and returns its label.
func (d *dispatch) search(spans []span) label {
	if len(spans) == 1 {
		return spans[0].to
	}
	mid := len(spans) / 2
	upper := d.search(spans[mid:])
	lower := d.search(spans[:mid])
	return d.branch(bpfAtLeast, spans[mid].from, upper, lower)
}

// block writes the clauses of a rule and returns the label of the first one. It skips clauses
// after one that always holds.
func (d *dispatch) block(clauses []clause) label {
	var otherwise uint32 = ActAllow
	if i := slices.IndexFunc(clauses, func(c clause) bool { return len(c.when) == 0 }); i >= 0 {
		otherwise = clauses[i].answer
		clauses = clauses[:i]
	}
	at := d.answer(otherwise)
	for n, c := range slices.Backward(clauses) {
		fail := at
		at = d.answer(c.answer)
		for i, t := range slices.Backward(c.when) {
			if t.not {
				at = d.branch(bpfEqual, t.is, fail, at)
			} else {
				at = d.branch(bpfEqual, t.is, at, fail)
			}
			if t.mask != 0 {
				at = d.put(bpfAnd, t.mask)
			}
			before := c.when[max(i-1, 0):i]
			if i == 0 && n > 0 {
				before = clauses[n-1].when // any of them may have failed
			}
			if !loaded(before, t) {
				at = d.put(bpfLoad, offset(t))
			}
		}
	}
	return at
}

// loaded reports whether the word that t needs is loaded after any of the tests before t.
func loaded(before []test, t test) bool {
	other := func(b test) bool { return b.mask != 0 || offset(b) != offset(t) }
	return len(before) > 0 && !slices.ContainsFunc(before, other)
}

// offset returns the offset of the word that a test looks at.
func offset(t test) uint32 {
	off := offsetArgs + 8*uint32(t.arg)
	if t.high {
		off += 4
	}
	return off
}
