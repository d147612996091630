package seccomp

import (
	"cmp"
	"slices"
	"strings"
)

// Filter is the seccomp filter of a Plan: a program for the kernel, and a description of its
// decisions.
type Filter struct {
	Arch    string // the machine it is for
	Program []Instruction
	Decided int // how many system calls it decides about

	rules []rule
}

// Answer returns what the filter answers to a system call with these arguments: "allowed", an
// error such as "EPERM", or "decided by the broker".
func (f *Filter) Answer(call string, args [6]uint64) string { return actionName(f.decide(call, args)) }

// decide returns the answer by the rules. The program gives the same.
func (f *Filter) decide(call string, args [6]uint64) uint32 {
	fails := func(t test) bool { return !t.holds(args) }
	for _, r := range f.rules {
		if !slices.Contains(r.calls, call) {
			continue
		}
		for _, c := range r.clauses {
			if !slices.ContainsFunc(c.when, fails) {
				return c.answer
			}
		}
	}
	return ActAllow
}

// Outside reports whether the kernel, too, would refuse what the filter refuses of a system call.
func (f *Filter) Outside(call string) bool {
	return slices.ContainsFunc(f.rules, func(r rule) bool { return r.outside && slices.Contains(r.calls, call) })
}

// Decision is what a filter does about some system calls.
type Decision struct {
	Calls  []string // by name, without those that the machine lacks
	When   string   // a condition on the arguments; "" for every call
	Answer string   // what the caller sees: an error such as "EPERM", or several separated by "|"
	Why    string
}

// Decisions returns all decisions. No call is in two of them.
func (f *Filter) Decisions() []Decision {
	var out []Decision
	for _, r := range f.rules {
		calls := slices.DeleteFunc(slices.Clone(r.calls), func(name string) bool {
			_, ok := sysnrOf(f.Arch, name)
			return !ok
		})
		if len(calls) > 0 {
			out = append(out, Decision{calls, r.when, r.answers(), r.why})
		}
	}
	return out
}

// The answers of a filter (linux/seccomp.h) and the error numbers in them,
// which are the same on both machines.
const (
	ActAllow  = 0x7fff0000 // SECCOMP_RET_ALLOW
	ActKill   = 0x80000000 // SECCOMP_RET_KILL_PROCESS
	ActErrno  = 0x00050000 // SECCOMP_RET_ERRNO
	actNotify = 0x7fc00000 // SECCOMP_RET_USER_NOTIF

	pretendSuccess = ActErrno // returns 0 and does nothing

	RefuseEPERM           = ActErrno | 1
	RefuseEACCES          = ActErrno | 13
	refuseEBUSY           = ActErrno | 16
	RefuseENOSYS          = ActErrno | 38
	RefuseENOPROTOOPT     = ActErrno | 92
	RefuseEPROTONOSUPPORT = ActErrno | 93
	refuseESOCKTNOSUPPORT = ActErrno | 94
	RefuseEOPNOTSUPP      = ActErrno | 95
	RefuseEAFNOSUPPORT    = ActErrno | 97
)

// actionName returns an answer as programs see it.
func actionName(action uint32) string {
	return cmp.Or(map[uint32]string{
		ActAllow:       "allowed",
		ActKill:        "killed",
		actNotify:      "decided by the broker",
		pretendSuccess: "success, without effect",

		RefuseEPERM:           "EPERM",
		RefuseEACCES:          "EACCES",
		refuseEBUSY:           "EBUSY",
		RefuseENOSYS:          "ENOSYS",
		RefuseENOPROTOOPT:     "ENOPROTOOPT",
		RefuseEPROTONOSUPPORT: "EPROTONOSUPPORT",
		refuseESOCKTNOSUPPORT: "ESOCKTNOSUPPORT",
		RefuseEOPNOTSUPP:      "EOPNOTSUPP",
		RefuseEAFNOSUPPORT:    "EAFNOSUPPORT",
	}[action], "?")
}

// test compares one half of an argument with a number. For arguments that the kernel takes as
// int, rules test only the low half. The kernel ignores the high half, so a program could evade
// a test by setting it.
type test struct {
	arg  uint8
	high bool   // the upper 32 bits
	mask uint32 // the bits to compare; 0 for all
	not  bool
	is   uint32
}

func (t test) holds(args [6]uint64) bool {
	got := uint32(args[t.arg])
	if t.high {
		got = uint32(args[t.arg] >> 32)
	}
	if t.mask != 0 {
		got &= t.mask
	}
	return (got == t.is) != t.not
}

// clause gives its answer if all of its tests hold.
type clause struct {
	when   []test
	answer uint32
}

// rule decides about some system calls. The first clause that holds answers. If none holds, the
// call is allowed. No two rules name the same call.
type rule struct {
	calls   []string
	clauses []clause
	when    string
	why     string
	outside bool // the kernel refuses the same without zsbx, with the same error
}

// refuse returns a rule that gives the same answer to all of the calls.
func refuse(answer uint32, why string, calls ...string) rule {
	return rule{calls: calls, clauses: []clause{{answer: answer}}, why: why}
}

// newFilter compiles rules for a machine. It returns nil if the machine is unknown or the
// program is too long for the kernel.
func newFilter(arch string, rules []rule) *Filter {
	if auditArch(arch) == 0 {
		return nil
	}
	d := dispatch{writer: writer{make([]Instruction, 0, 256)}, answers: map[uint32]label{}}
	decided := 0
	for i := range rules {
		at := label(0)
		for _, c := range rules[i].calls {
			if nr, ok := sysnrOf(arch, c); ok {
				if at == 0 {
					at = d.target(&rules[i])
				}
				d.to[nr] = at
				decided++
			}
		}
	}
	d.head(auditArch(arch))
	if len(d.out) > maxInstructions {
		return nil // tests compile every combination
	}
	slices.Reverse(d.out)
	return &Filter{Arch: arch, Program: d.out, Decided: decided, rules: rules}
}

// answers returns a rule's refusals as text.
func (r rule) answers() string {
	var out []string
	for _, c := range r.clauses {
		if name := actionName(c.answer); c.answer != ActAllow && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return strings.Join(out, "|")
}
