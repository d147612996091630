package seccomp

import (
	"errors"
	"fmt"
)

// Instruction is one instruction of a seccomp filter: struct sock_filter of
// linux/filter.h, in memory too.
type Instruction struct {
	Code   uint16
	Jt, Jf uint8
	K      uint32
}

// The instructions that a filter needs; see seccomp(2) and the kernel's
// Documentation/networking/filter.rst. A filter reads 32-bit words of struct
// seccomp_data, compares and returns.
const (
	bpfLoad    = 0x20 // BPF_LD | BPF_W | BPF_ABS
	bpfAnd     = 0x54 // BPF_ALU | BPF_AND | BPF_K
	bpfJump    = 0x05 // BPF_JMP | BPF_JA
	bpfEqual   = 0x15 // BPF_JMP | BPF_JEQ | BPF_K
	bpfAtLeast = 0x35 // BPF_JMP | BPF_JGE | BPF_K
	bpfReturn  = 0x06 // BPF_RET | BPF_K
)

// maxInstructions is BPF_MAXINSNS: the kernel refuses longer filters.
const maxInstructions = 4096

// label is a place in a program that is still being written.
type label int

// next is the label of the instruction right after a jump.
const next label = -1

// asm writes a filter. Jumps go forward, to labels that are placed later; the
// eight bits that a conditional jump has for its distance are made to do by
// going through unconditional ones where they must.
type asm struct {
	ops    []op
	placed []int // by label, the op that it stands before
}

// op is an instruction whose jumps still name labels.
type op struct {
	code   uint16
	k      uint32
	jt, jf label // conditional jumps
	to     label // bpfJump
}

func (a *asm) label() label {
	a.placed = append(a.placed, -1)
	return label(len(a.placed) - 1)
}

// place puts a label before the next instruction.
func (a *asm) place(l label) { a.placed[l] = len(a.ops) }

func (a *asm) load(offset uint32) { a.ops = append(a.ops, op{code: bpfLoad, k: offset}) }
func (a *asm) and(mask uint32)    { a.ops = append(a.ops, op{code: bpfAnd, k: mask}) }
func (a *asm) ret(action uint32)  { a.ops = append(a.ops, op{code: bpfReturn, k: action}) }
func (a *asm) jump(to label)      { a.ops = append(a.ops, op{code: bpfJump, to: to}) }
func (a *asm) branch(code uint16, k uint32, yes, no label) {
	a.ops = append(a.ops, op{code: code, k: k, jt: yes, jf: no})
}

var errBackwards = errors.New("a jump of the filter goes backwards or nowhere")

// assemble gives the program. Which jumps need to be long depends on where
// everything lies, and that on which are long: they are only ever made long,
// so that it comes to an end.
func (a *asm) assemble() ([]Instruction, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	long := make([][2]bool, len(a.ops)) // jt, jf through a bpfJump of their own
	for {
		at := a.offsets(long)
		if at[len(a.ops)] > maxInstructions {
			return nil, fmt.Errorf("the filter has %d instructions, %d are allowed", at[len(a.ops)], maxInstructions)
		}
		grown := false
		for i, o := range a.ops {
			if !conditional(o.code) {
				continue
			}
			for side, l := range [2]label{o.jt, o.jf} {
				if l != next && !long[i][side] && at[a.placed[l]]-at[i]-1 > 255 {
					long[i][side], grown = true, true
				}
			}
		}
		if !grown {
			return a.emit(at, long), nil
		}
	}
}

// check finds jumps that go backwards or to a label that was never placed.
func (a *asm) check() error {
	for i, o := range a.ops {
		var to []label
		switch {
		case o.code == bpfJump:
			to = []label{o.to}
		case conditional(o.code):
			to = []label{o.jt, o.jf}
		}
		for _, l := range to {
			if l == next && o.code != bpfJump && i+1 < len(a.ops) {
				continue
			}
			if l < 0 || a.placed[l] <= i || a.placed[l] >= len(a.ops) {
				return errBackwards
			}
		}
	}
	return nil
}

func conditional(code uint16) bool {
	return code&0x07 == bpfJump && code != bpfJump
}

// offsets gives each op's place in the program, and the program's length.
func (a *asm) offsets(long [][2]bool) []int {
	at := make([]int, len(a.ops)+1)
	for i := range a.ops {
		at[i+1] = at[i] + 1
		for _, l := range long[i] {
			if l {
				at[i+1]++
			}
		}
	}
	return at
}

func (a *asm) emit(at []int, long [][2]bool) []Instruction {
	out := make([]Instruction, 0, at[len(a.ops)])
	for i, o := range a.ops {
		switch {
		case o.code == bpfJump:
			out = append(out, Instruction{Code: bpfJump, K: a.distance(o.to, at, at[i])})
		case conditional(o.code):
			out = append(out, a.emitBranch(o, at, at[i], long[i])...)
		default:
			out = append(out, Instruction{Code: o.code, K: o.k})
		}
	}
	return out
}

// emitBranch writes a conditional jump at here, and behind it the
// unconditional ones that its long sides go through.
func (a *asm) emitBranch(o op, at []int, here int, long [2]bool) []Instruction {
	out := []Instruction{{Code: o.code, K: o.k}}
	var short [2]int
	for side, l := range [2]label{o.jt, o.jf} {
		switch {
		case l == next:
			short[side] = -1
		case long[side]:
			short[side] = len(out) - 1
			out = append(out, Instruction{Code: bpfJump, K: a.distance(l, at, here+len(out))})
		default:
			short[side] = int(a.distance(l, at, here))
		}
	}
	for side, d := range short {
		if d < 0 { // next: past the long jumps
			short[side] = len(out) - 1
		}
	}
	out[0].Jt, out[0].Jf = uint8(short[0]), uint8(short[1])
	return out
}

// distance is how far a jump at here goes to a label.
func (a *asm) distance(l label, at []int, here int) uint32 {
	return uint32(at[a.placed[l]] - here - 1)
}
