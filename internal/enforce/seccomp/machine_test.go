package seccomp

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// machine runs a filter like the kernel's interpreter, on every system and for every machine.
func machine(prog []Instruction, data [64]byte) (uint32, error) {
	var acc uint32
	for pc := 0; pc >= 0 && pc < len(prog); pc++ {
		in := prog[pc]
		switch in.Code {
		case bpfLoad:
			if in.K > 60 || in.K%4 != 0 {
				return 0, fmt.Errorf("%d: load from %d", pc, in.K)
			}
			acc = binary.LittleEndian.Uint32(data[in.K:])
		case bpfAnd:
			acc &= in.K
		case bpfJump:
			pc += int(in.K)
		case bpfReturn:
			return in.K, nil
		case bpfEqual:
			pc += int(pick(acc == in.K, in))
		case bpfAtLeast:
			pc += int(pick(acc >= in.K, in))
		default:
			return 0, fmt.Errorf("%d: unknown code %#x", pc, in.Code)
		}
	}
	return 0, fmt.Errorf("the program has no end")
}

// seccompData is struct seccomp_data.
func seccompData(arch, nr uint32, args ...uint64) (data [64]byte) {
	binary.LittleEndian.PutUint32(data[0:], nr)
	binary.LittleEndian.PutUint32(data[4:], arch)
	for i, a := range args {
		binary.LittleEndian.PutUint64(data[16+8*i:], a)
	}
	return data
}

func pick(yes bool, in Instruction) uint8 {
	if yes {
		return in.Jt
	}
	return in.Jf
}

// TestProgramIsRules: the program that the kernel runs gives the same answers as the rules, for
// every call and for arguments near those in the rules.
func TestProgramIsRules(t *testing.T) {
	for _, arch := range arches() {
		for name, f := range filters(t, arch) {
			values := []uint64{0, 1, 1 << 32, ^uint64(0)}
			for _, r := range f.rules {
				for _, c := range r.clauses {
					for _, x := range c.when {
						values = append(values, uint64(x.is), uint64(x.is)+1, uint64(x.is)<<32|1)
					}
				}
			}
			for _, s := range sysnrTable {
				nr, ok := sysnrOf(arch, s.name)
				for range 50 {
					var args [6]uint64
					for i := range args {
						args[i] = values[rand.IntN(len(values))]
					}
					got, err := machine(f.Program, seccompData(auditArch(arch), nr, args[:]...))
					if want := f.decide(s.name, args); ok && (err != nil || got != want) {
						t.Fatalf("%s %s: %s%x: %s, %v; the rules say %s", arch, name, s.name, args, actionName(got), err, actionName(want))
					}
				}
			}
		}
	}
}
