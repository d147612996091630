package seccomp

import (
	"cmp"
	"slices"
)

// dispatch writes the program: a search for the system call's number in a
// balanced tree, and behind it one block for each rule that looks at
// arguments and one for each plain answer.
//
// The kernel runs the program once for each number when it is installed and
// remembers those that are allowed without a look at the arguments (since
// Linux 5.11): these calls cost nothing more afterwards, whatever the depth of
// the tree.
type dispatch struct {
	writer
	points []point // the system calls that a rule is about
	plain  []plainAnswer
}

// point sends one system call, and segment those from a number on, to a place.
type (
	point struct {
		nr uint32
		to place
	}
	segment struct {
		from uint32
		to   place
	}
	plainAnswer struct {
		action uint32
		at     place
	}
)

// answer is the place of a plain answer.
func (d *dispatch) answer(action uint32) place {
	for _, p := range d.plain {
		if p.action == action {
			return p.at
		}
	}
	p := plainAnswer{action, d.put(bpfReturn, action)}
	d.plain = append(d.plain, p)
	return p.at
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

// head writes what comes before the blocks and the answers.
func (d *dispatch) head(arch uint32) {
	kill := d.answer(ActKill)
	d.search(d.segments())
	tree := d.put(bpfLoad, offsetNr)
	d.branch(bpfEqual, arch, tree, kill)
	d.put(bpfLoad, offsetArch)
}

// segments cuts the numbers into runs with the same target. The last run is
// that of the calls which nobody has looked at yet, those of x32 included:
// they carry bit 30.
func (d *dispatch) segments() []segment {
	slices.SortFunc(d.points, func(a, b point) int { return cmp.Compare(a.nr, b.nr) })
	allow := d.answer(ActAllow)
	out := make([]segment, 1, 2*len(d.points)+2)
	out[0] = segment{0, allow}
	add := func(from uint32, to place) {
		switch last := &out[len(out)-1]; {
		case last.to == to:
		case last.from == from:
			last.to = to
			if len(out) > 1 && out[len(out)-2].to == to {
				out = out[:len(out)-1]
			}
		default:
			out = append(out, segment{from, to})
		}
	}
	for _, p := range d.points {
		add(p.nr, p.to)
		add(p.nr+1, allow)
	}
	add(LastSyscall+1, d.answer(RefuseENOSYS))
	return out
}

// search writes the tree over segments, and gives its place.
func (d *dispatch) search(s []segment) place {
	if len(s) == 1 {
		return s[0].to
	}
	mid := len(s) / 2
	upper := d.search(s[mid:])
	lower := d.search(s[:mid])
	return d.branch(bpfAtLeast, s[mid].from, upper, lower)
}

// block writes the clauses of a rule, and gives the place of the first one. What
// follows a clause that always holds can't be reached.
func (d *dispatch) block(clauses []clause) place {
	var otherwise uint32 = ActAllow
	if i := slices.IndexFunc(clauses, func(c clause) bool { return len(c.when) == 0 }); i >= 0 {
		clauses, otherwise = clauses[:i], clauses[i].answer
	}
	at := d.put(bpfReturn, otherwise)
	for _, c := range slices.Backward(clauses) {
		fail := at
		at = d.put(bpfReturn, c.answer)
		for i, t := range slices.Backward(c.when) {
			if t.not {
				at = d.branch(bpfEqual, t.is, fail, at)
			} else {
				at = d.branch(bpfEqual, t.is, at, fail)
			}
			if t.mask != 0 {
				at = d.put(bpfAnd, t.mask)
			}
			if i == 0 || c.when[i-1].mask != 0 || offset(c.when[i-1]) != offset(t) {
				at = d.put(bpfLoad, offset(t))
			}
		}
	}
	return at
}

// offset is where a test finds what it looks at.
func offset(t test) uint32 {
	off := offsetArgs + 8*uint32(t.arg)
	if t.high {
		off += 4
	}
	return off
}
