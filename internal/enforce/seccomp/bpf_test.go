package seccomp

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// checkProgram checks that every path through a program ends at a return, as the kernel does
// when it installs one.
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

func TestLongJumps(t *testing.T) {
	for _, gap := range []int{0, 1, 252, 253, 254, 255, 256, 257, 600} {
		for sides := range 3 {
			t.Run(fmt.Sprintf("%d/%d", gap, sides), func(t *testing.T) {
				w := &writer{}
				no := w.put(bpfReturn, 2)
				yes := w.put(bpfReturn, 1)
				if gap == 0 && sides != 2 {
					w.put(bpfReturn, 3)
				}
				for range gap {
					w.put(bpfReturn, 3)
				}
				switch sides {
				case 0:
					w.branch(bpfEqual, 7, yes, w.here())
				case 1:
					w.branch(bpfEqual, 7, w.here(), no)
				case 2:
					w.branch(bpfEqual, 7, yes, no)
				}
				w.put(bpfLoad, 0)
				slices.Reverse(w.out)
				checkProgram(t, w.out)
				want := map[int][2]uint32{0: {1, 3}, 1: {3, 2}, 2: {1, 2}}[sides]
				for i, nr := range []uint32{7, 8} {
					if got, err := machine(w.out, seccompData(0, nr)); err != nil || got != want[i] {
						t.Errorf("nr %d: got %d (%v), want %d", nr, got, err, want[i])
					}
				}
			})
		}
	}
}

func TestTooLong(t *testing.T) {
	long := make([]clause, maxInstructions)
	for i := range long {
		long[i] = clause{when: []test{{arg: 1, is: uint32(i)}}}
	}
	if newFilter("amd64", []rule{{calls: []string{"open"}, clauses: long}}) != nil {
		t.Error("a filter that no kernel takes")
	}
}

// op is an instruction that refers to other ops by number.
type op struct {
	code    uint16
	k       uint32
	yes, no int
}

// FuzzWriter writes random programs and runs them next to a direct reading of
// their ops.
func FuzzWriter(f *testing.F) {
	f.Add(uint64(1), uint16(10))
	f.Add(uint64(2), uint16(700))
	f.Fuzz(func(t *testing.T, seed uint64, size uint16) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		n := int(size)%900 + 2
		ops := make([]op, n)
		for i := range n - 1 {
			far := func() int {
				if rnd.IntN(4) == 0 {
					return i + 1
				}
				return i + 1 + rnd.IntN(n-1-i)
			}
			switch rnd.IntN(5) {
			case 0:
				ops[i] = op{bpfLoad, uint32(rnd.IntN(2)) * 4, i + 1, i + 1}
			case 1:
				ops[i] = op{bpfAnd, rnd.Uint32(), i + 1, i + 1}
			default:
				ops[i] = op{bpfAtLeast, rnd.Uint32N(64), far(), far()}
			}
		}
		ops[n-1] = op{code: bpfReturn, k: 99}
		w, places := &writer{}, make([]label, n)
		for i, o := range slices.Backward(ops) {
			if o.code == bpfAtLeast {
				places[i] = w.branch(o.code, o.k, places[o.yes], places[o.no])
			} else {
				places[i] = w.put(o.code, o.k)
			}
		}
		slices.Reverse(w.out)
		checkProgram(t, w.out)
		for nr := range uint32(64) {
			data := seccompData(63-nr, nr)
			if got, err := machine(w.out, data); err != nil || got != 99 {
				t.Fatalf("got %d, %v", got, err)
			}
			if got, want := trail(w.out, data), opTrail(ops, data); got != want {
				t.Fatalf("nr %d: the accumulator went %v, the ops say %v", nr, got, want)
			}
		}
	})
}

// trail returns a digest of what a program did to its accumulator.
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

// opTrail returns the same digest for ops.
func opTrail(ops []op, data [64]byte) (sum uint64) {
	var acc uint32
	for i := 0; ; {
		o := ops[i]
		i = o.yes
		switch o.code {
		case bpfLoad:
			acc = binary.LittleEndian.Uint32(data[o.k:])
			sum = sum*31 + uint64(acc) + 1
		case bpfAnd:
			acc &= o.k
			sum = sum*31 + uint64(acc) + 1
		case bpfReturn:
			return sum
		default:
			if acc < o.k {
				i = o.no
			}
		}
	}
}
