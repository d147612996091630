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
	asm    *asm
	points []point
	allow  label
	plain  []plainAnswer
	blocks []block // rules that look at arguments
}

// point sends one system call, and segment those from a number on, to a label.
type (
	point struct {
		nr uint32
		to label
	}
	segment struct {
		from uint32
		to   label
	}
	block struct {
		at label
		r  rule
	}
	plainAnswer struct {
		action uint32
		at     label
	}
)

// answerAt is the label of a plain answer.
func (d *dispatch) answerAt(action uint32) label {
	if action == ActAllow {
		return d.allow
	}
	for _, p := range d.plain {
		if p.action == action {
			return p.at
		}
	}
	p := plainAnswer{action, d.asm.label()}
	d.plain = append(d.plain, p)
	return p.at
}

// target is where the calls of a rule go.
func (d *dispatch) target(r rule) label {
	if len(r.clauses) > 0 && len(r.clauses[0].when) == 0 {
		return d.answerAt(r.clauses[0].answer)
	}
	b := block{d.asm.label(), r}
	d.blocks = append(d.blocks, b)
	return b.at
}

// The offsets in struct seccomp_data.
const (
	offsetNr   = 0
	offsetArch = 4
	offsetArgs = 16 // six 64-bit words, little-endian on both machines
)

func (d *dispatch) write(arch uint32) {
	a := d.asm
	kill := d.answerAt(ActKill)
	a.load(offsetArch)
	a.branch(bpfEqual, arch, next, kill)
	a.load(offsetNr)
	d.search(d.segments())
	for _, b := range d.blocks {
		a.place(b.at)
		d.writeBlock(b.r)
	}
	a.place(d.allow)
	a.ret(ActAllow)
	for _, p := range d.plain {
		a.place(p.at)
		a.ret(p.action)
	}
}

// segments cuts the numbers into runs with the same target. The last run is
// that of the calls which nobody has looked at yet, those of x32 included:
// they carry bit 30.
func (d *dispatch) segments() []segment {
	slices.SortFunc(d.points, func(a, b point) int { return cmp.Compare(a.nr, b.nr) })
	out := make([]segment, 1, 2*len(d.points)+2)
	out[0] = segment{0, d.allow}
	add := func(from uint32, to label) {
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
		add(p.nr+1, d.allow)
	}
	add(LastSyscall+1, d.answerAt(RefuseENOSYS))
	return out
}

// search writes the tree over segments.
func (d *dispatch) search(s []segment) {
	if len(s) == 1 {
		d.asm.jump(s[0].to)
		return
	}
	mid := len(s) / 2
	lower, upper := next, next
	if mid == 1 {
		lower = s[0].to
	}
	if len(s)-mid == 1 {
		upper = s[mid].to
	}
	if lower == next && upper == next {
		upper = d.asm.label()
	}
	d.asm.branch(bpfAtLeast, s[mid].from, upper, lower)
	if mid > 1 {
		d.search(s[:mid])
	}
	if len(s)-mid > 1 {
		if mid > 1 {
			d.asm.place(upper)
		}
		d.search(s[mid:])
	}
}

// writeBlock writes the clauses of a rule, one after the other.
func (d *dispatch) writeBlock(r rule) {
	a := d.asm
	for _, c := range r.clauses {
		fail := a.label()
		var loaded *test
		for i, t := range c.when {
			if loaded == nil || loaded.arg != t.arg || loaded.high != t.high || loaded.mask != 0 {
				a.load(argOffset(t))
			}
			loaded = &c.when[i]
			if t.mask != 0 {
				a.and(t.mask)
			}
			if t.not {
				a.branch(bpfEqual, t.is, fail, next)
			} else {
				a.branch(bpfEqual, t.is, next, fail)
			}
		}
		a.ret(c.answer)
		if len(c.when) == 0 {
			return // what follows can't be reached
		}
		a.place(fail)
	}
	a.ret(ActAllow)
}

func argOffset(t test) uint32 {
	off := uint32(offsetArgs + 8*t.arg)
	if t.high {
		off += 4
	}
	return off
}
