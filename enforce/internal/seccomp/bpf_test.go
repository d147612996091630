package seccomp

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// checkProgram makes sure that every path through a program ends at a return,
// as the kernel does when it installs one.
func checkProgram(t *testing.T, prog []Instruction) {
	t.Helper()
	for pc, in := range prog {
		var to []int
		switch in.Code {
		case bpfReturn:
			continue
		case bpfJump:
			to = []int{pc + 1 + int(in.K)}
		case bpfEqual, bpfAtLeast:
			to = []int{pc + 1 + int(in.Jt), pc + 1 + int(in.Jf)}
		default:
			to = []int{pc + 1}
		}
		for _, n := range to {
			if n >= len(prog) {
				t.Fatalf("instruction %d goes to %d of %d", pc, n, len(prog))
			}
		}
	}
}

func TestAssembleLongJumps(t *testing.T) {
	for _, gap := range []int{0, 1, 252, 253, 254, 255, 256, 257, 600} {
		for sides := range 3 {
			t.Run(fmt.Sprintf("%d/%d", gap, sides), func(t *testing.T) {
				a := &asm{}
				yes, no := a.label(), a.label()
				a.load(0)
				switch sides {
				case 0:
					a.branch(bpfEqual, 7, yes, next)
				case 1:
					a.branch(bpfEqual, 7, next, no)
				case 2:
					a.branch(bpfEqual, 7, yes, no)
				}
				for range gap {
					a.ret(3)
				}
				if gap == 0 && sides != 2 {
					a.ret(3)
				}
				a.place(yes)
				a.ret(1)
				a.place(no)
				a.ret(2)
				prog, err := a.assemble()
				if err != nil {
					t.Fatal(err)
				}
				checkProgram(t, prog)
				want := map[int][2]uint32{0: {1, 3}, 1: {3, 2}, 2: {1, 2}}[sides]
				for i, nr := range []uint32{7, 8} {
					if got, err := machine(prog, seccompData(0, nr)); err != nil || got != want[i] {
						t.Errorf("nr %d: got %d (%v), want %d", nr, got, err, want[i])
					}
				}
			})
		}
	}
}

func TestAssembleRefuses(t *testing.T) {
	back := &asm{}
	l := back.label()
	back.place(l)
	back.load(0)
	back.jump(l)
	never := &asm{}
	never.branch(bpfEqual, 1, never.label(), next)
	never.ret(0)
	end := &asm{}
	end.branch(bpfEqual, 1, next, next)
	long := &asm{}
	for range maxInstructions + 1 {
		long.ret(0)
	}
	for name, a := range map[string]*asm{"backwards": back, "not placed": never, "off the end": end, "too long": long} {
		if _, err := a.assemble(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzAssemble assembles random programs and runs them next to a direct
// reading of their ops.
func FuzzAssemble(f *testing.F) {
	f.Add(uint64(1), uint16(10))
	f.Add(uint64(2), uint16(700))
	f.Fuzz(func(t *testing.T, seed uint64, size uint16) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		n := int(size)%900 + 2
		a := &asm{}
		labels := make([]label, n)
		for i := range labels {
			labels[i] = a.label()
		}
		far := func(i int) label {
			if rnd.IntN(4) == 0 {
				return next
			}
			return labels[i+1+rnd.IntN(n-1-i)]
		}
		for i := range n - 1 {
			a.place(labels[i])
			switch rnd.IntN(5) {
			case 0:
				a.load(uint32(rnd.IntN(2)) * 4)
			case 1:
				a.and(rnd.Uint32())
			case 2:
				a.jump(labels[i+1+rnd.IntN(n-1-i)])
			default:
				a.branch(bpfAtLeast, rnd.Uint32N(64), far(i), far(i))
			}
		}
		a.place(labels[n-1])
		a.ret(99)
		prog, err := a.assemble()
		if err != nil {
			return // too long
		}
		checkProgram(t, prog)
		for nr := range uint32(64) {
			data := seccompData(63-nr, nr)
			if got, err := machine(prog, data); err != nil || got != 99 {
				t.Fatalf("got %d, %v", got, err)
			}
			if got, want := trail(prog, data), opTrail(a, data); got != want {
				t.Fatalf("nr %d: the accumulator went %v, the ops say %v", nr, got, want)
			}
		}
	})
}

// trail is a digest of what a program did to its accumulator.
func trail(prog []Instruction, data [64]byte) (sum uint64) {
	var acc uint32
	for pc := 0; pc < len(prog); pc++ {
		in := prog[pc]
		switch in.Code {
		case bpfLoad:
			acc = binary.LittleEndian.Uint32(data[in.K:])
		case bpfAnd:
			acc &= in.K
		case bpfJump:
			pc += int(in.K)
			continue
		case bpfReturn:
			return sum
		default:
			if acc >= in.K {
				pc += int(in.Jt)
			} else {
				pc += int(in.Jf)
			}
			continue
		}
		sum = sum*31 + uint64(acc) + 1
	}
	return sum
}

// opTrail is the same of what was written.
func opTrail(a *asm, data [64]byte) (sum uint64) {
	var acc uint32
	for i := 0; i < len(a.ops); {
		o := a.ops[i]
		i++
		to := next
		switch o.code {
		case bpfLoad:
			acc = binary.LittleEndian.Uint32(data[o.k:])
			sum = sum*31 + uint64(acc) + 1
		case bpfAnd:
			acc &= o.k
			sum = sum*31 + uint64(acc) + 1
		case bpfJump:
			to = o.to
		case bpfReturn:
			return sum
		default:
			if to = o.jf; acc >= o.k {
				to = o.jt
			}
		}
		if to != next {
			i = a.placed[to]
		}
	}
	return sum
}
