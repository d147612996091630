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
	points []point          // the system calls that a rule is about
	plain  map[uint32]place // the plain answers
}

// point sends one system call to a place.
type point struct {
	nr uint32
	to place
}

// answer is the place of a plain answer.
func (d *dispatch) answer(action uint32) place {
	if d.plain[action] == 0 {
		d.plain[action] = d.put(bpfReturn, action)
	}
	return d.plain[action]
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

// head writes what comes before the blocks and the answers. Calls which nobody has looked
// at yet are refused, those of x32 included: they carry bit 30.
func (d *dispatch) head(arch uint32) {
	slices.SortFunc(d.points, func(a, b point) int { return cmp.Compare(a.nr, b.nr) })
	kill, unknown, allow := d.answer(ActKill), d.answer(RefuseENOSYS), d.answer(ActAllow)
	d.branch(bpfAtLeast, LastSyscall+1, unknown, d.search(d.points, allow))
	tree := d.put(bpfLoad, offsetNr)
	d.branch(bpfEqual, arch, tree, kill)
	d.put(bpfLoad, offsetArch)
}

// search writes the tree over points, and gives its place.
func (d *dispatch) search(points []point, otherwise place) place {
	if len(points) == 1 {
		return d.branch(bpfEqual, points[0].nr, points[0].to, otherwise)
	}
	mid := len(points) / 2
	upper := d.search(points[mid:], otherwise)
	lower := d.search(points[:mid], otherwise)
	return d.branch(bpfAtLeast, points[mid].nr, upper, lower)
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
