package seccomp

import (
	"cmp"
	"slices"
)

// dispatch writes the program: a search for the system call's number in a
// balanced tree, and behind it one block for each rule that looks at
// arguments and one for each answer.
//
// The kernel translates the program when it is installed, and runs it once for
// each number: that is 2 % of a start, and grows with the program. The numbers that
// are allowed without a look at the arguments it remembers (since Linux 5.11): these
// calls cost nothing more afterwards.
type dispatch struct {
	writer
	to      [LastSyscall + 1]place // where a rule sends each system call; 0 for none
	answers map[uint32]place
}

func (d *dispatch) answer(action uint32) place {
	if d.answers[action] == 0 {
		d.answers[action] = d.put(bpfReturn, action)
	}
	return d.answers[action]
}

// target is where the calls of a rule go.
func (d *dispatch) target(r *rule) place {
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

// span is a place for the system calls from a number on, up to the next span.
type span struct {
	from uint32
	to   place
}

// head writes what comes before the blocks and the answers. Calls which nobody has looked
// at yet are refused, those of x32 included: they carry bit 30.
func (d *dispatch) head(arch uint32) {
	kill, unknown, allow := d.answer(ActKill), d.answer(RefuseENOSYS), d.answer(ActAllow)
	spans := make([]span, 0, 128)
	for nr, to := range d.to {
		if to = cmp.Or(to, allow); nr == 0 || to != spans[len(spans)-1].to {
			spans = append(spans, span{uint32(nr), to})
		}
	}
	d.search(append(spans, span{LastSyscall + 1, unknown}))
	tree := d.put(bpfLoad, offsetNr)
	d.branch(bpfEqual, arch, tree, kill)
	d.put(bpfLoad, offsetArch)
}

// search writes the tree over spans, and gives its place.
func (d *dispatch) search(spans []span) place {
	if len(spans) == 1 {
		return spans[0].to
	}
	mid := len(spans) / 2
	upper := d.search(spans[mid:])
	lower := d.search(spans[:mid])
	return d.branch(bpfAtLeast, spans[mid].from, upper, lower)
}

// block writes the clauses of a rule, and gives the place of the first one. What
// follows a clause that always holds can't be reached.
func (d *dispatch) block(clauses []clause) place {
	var otherwise uint32 = ActAllow
	if i := slices.IndexFunc(clauses, func(c clause) bool { return len(c.when) == 0 }); i >= 0 {
		clauses, otherwise = clauses[:i], clauses[i].answer
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

// loaded reports whether each of the tests before t has loaded what t looks at.
func loaded(before []test, t test) bool {
	return len(before) > 0 && !slices.ContainsFunc(before, func(b test) bool { return b.mask != 0 || offset(b) != offset(t) })
}

// offset is where a test finds what it looks at.
func offset(t test) uint32 {
	off := offsetArgs + 8*uint32(t.arg)
	if t.high {
		off += 4
	}
	return off
}
