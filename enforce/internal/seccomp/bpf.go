package seccomp

import (
	"errors"
	"fmt"
	"slices"
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

// asm writes a filter. Jumps go forward, to labels that are placed later.
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

// assemble writes the program from its end to its beginning: so it is known, of each
// jump, how far it goes.
func (a *asm) assemble() ([]Instruction, error) {
	out := make([]Instruction, 0, 2*len(a.ops)) // the last one first
	left := make([]int, len(a.ops))             // by op, how many instructions there are from it on
	for i := len(a.ops) - 1; i >= 0; i-- {
		o := a.ops[i]
		in, here := Instruction{Code: o.code, K: o.k}, len(out)
		switch o.code {
		case bpfJump:
			at, err := a.target(o.to, i, left)
			if err != nil {
				return nil, err
			}
			in.K = uint32(here - at)
		case bpfEqual, bpfAtLeast:
			to := [2]int{here, here}
			for side, l := range [2]label{o.jt, o.jf} {
				if l == next && i+1 < len(a.ops) {
					continue
				}
				var err error
				if to[side], err = a.target(l, i, left); err != nil {
					return nil, err
				}
			}
			for range 2 { // the second one's bpfJump may put the first one's place out of reach
				for side := range to {
					if len(out)-to[side] > 255 { // eight bits: through a bpfJump of its own
						out = append(out, Instruction{Code: bpfJump, K: uint32(len(out) - to[side])})
						to[side] = len(out)
					}
				}
			}
			in.Jt, in.Jf = uint8(len(out)-to[0]), uint8(len(out)-to[1])
		}
		out = append(out, in)
		left[i] = len(out)
	}
	if len(out) > maxInstructions {
		return nil, fmt.Errorf("the filter has %d instructions, %d are allowed", len(out), maxInstructions)
	}
	slices.Reverse(out)
	return out, nil
}

// target is how many instructions there are from a label on, as op i jumps there.
func (a *asm) target(l label, i int, left []int) (int, error) {
	if l < 0 || a.placed[l] <= i || a.placed[l] >= len(left) {
		return 0, errBackwards
	}
	return left[a.placed[l]], nil
}
