package seccomp

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

// writer writes a filter from its end to its beginning. Jumps go forward, so that
// of each it is known how far it goes.
type writer struct {
	out []Instruction // the last one first
}

// place is a place in a program: how many instructions there are from it on.
type place int32

// here is the place of the instruction that was written last.
func (w *writer) here() place { return place(len(w.out)) }

// put writes an instruction that jumps nowhere, and gives its place.
func (w *writer) put(code uint16, k uint32) place {
	w.out = append(w.out, Instruction{Code: code, K: k})
	return w.here()
}

// branch writes a comparison, and gives its place.
func (w *writer) branch(code uint16, k uint32, yes, no place) place {
	to := [2]place{yes, no}
	for range 2 { // the second one's bpfJump may put the first one's place out of reach
		for side := range to {
			if far := w.here() - to[side]; far > 255 { // eight bits: through a bpfJump of its own
				to[side] = w.put(bpfJump, uint32(far))
			}
		}
	}
	w.out = append(w.out, Instruction{Code: code, Jt: uint8(w.here() - to[0]), Jf: uint8(w.here() - to[1]), K: k})
	return w.here()
}
