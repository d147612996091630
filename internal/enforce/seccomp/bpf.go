package seccomp

// Instruction is one instruction of a seccomp filter. It has the memory layout of struct
// sock_filter (linux/filter.h).
type Instruction struct {
	Code   uint16
	Jt, Jf uint8
	K      uint32
}

// These are all the instructions that a filter needs. See seccomp(2) and the kernel's
// Documentation/networking/filter.rst. A filter reads 32-bit words of struct seccomp_data,
// compares and returns.
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

// writer writes a filter from its end to its beginning. Since jumps only go forward, each
// jump's distance is known when it is written.
type writer struct {
	out []Instruction // in reverse order
}

// label is a position in a program, as the number of instructions from there to the end.
type label int32

// here returns the label of the instruction that was written last.
func (w *writer) here() label { return label(len(w.out)) }

// put writes an instruction without a comparison and returns its label.
func (w *writer) put(code uint16, k uint32) label {
	w.out = append(w.out, Instruction{Code: code, K: k})
	return w.here()
}

// branch writes a comparison and returns its label.
func (w *writer) branch(code uint16, k uint32, yes, no label) label {
	to := [2]label{yes, no}
	for range 2 { // twice, since a bpfJump for the second side may put the first out of reach
		for side := range to {
			if far := w.here() - to[side]; far > 255 { // a comparison has eight bits for this: go through a bpfJump
				to[side] = w.put(bpfJump, uint32(far))
			}
		}
	}
	w.out = append(w.out, Instruction{Code: code, Jt: uint8(w.here() - to[0]), Jf: uint8(w.here() - to[1]), K: k})
	return w.here()
}
