package seccomp

import (
	"encoding/binary"
	"fmt"
)

// Answer is what the filter answers to a system call, by name, with these
// arguments: "allowed", "killed", an error as "EPERM", or "decided by the
// supervisor".
func (f *Filter) Answer(call string, args ...uint64) (string, error) {
	nr, ok := sysnrOf(f.Arch, call)
	if !ok {
		return "", fmt.Errorf("%s has no %s", f.Arch, call)
	}
	got, err := machine(f.Program, seccompData(auditArch(f.Arch), nr, args...))
	if err != nil {
		return "", err
	}
	return actionName(got), nil
}

// machine runs a filter as the kernel does. It stands in for the kernel's
// interpreter: it runs on every system, and for every machine.
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
