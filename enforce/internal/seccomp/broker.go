package seccomp

import "fmt"

// CapSysPtrace lets the supervisor look into processes that do not want to be
// looked into (CAP_SYS_PTRACE).
const CapSysPtrace = 19

// YamaRefuses says why the Yama security module lets a supervisor fetch no
// socket of its own command (proc_sys_kernel(5), ptrace_scope), or "". At 1
// ancestors may, which the supervisor is.
func YamaRefuses(scope byte, capabilities uint64) string {
	const what = "the Yama security module lets %s fetch the sockets of another process (kernel.yama.ptrace_scope is %c)"
	switch {
	case scope == '2' && capabilities&(1<<CapSysPtrace) == 0:
		return fmt.Sprintf(what, "only CAP_SYS_PTRACE", scope)
	case scope == '3':
		return fmt.Sprintf(what, "nobody", scope)
	}
	return ""
}

// mediateRules hand the calls by which a socket gets a peer or becomes one to
// the supervisor.
func mediateRules(capabilities uint64) []rule {
	rules := []rule{
		refuse(actNotify, "a Unix socket may only be connected to those of the session and to the allowed ones", "connect"),
		refuse(actNotify, "a Unix socket that listens is one of the session's from then on", "listen"),
	}
	if capabilities&(1<<CapSysPtrace) == 0 {
		const setDumpable = 4 // PR_SET_DUMPABLE
		rules = append(rules, rule{
			calls:   []string{"prctl"},
			clauses: []clause{{[]test{{arg: 0, is: setDumpable}, {arg: 1}, {arg: 1, high: true}}, pretendSuccess}},
			when:    "PR_SET_DUMPABLE to 0",
			why:     "the supervisor could no longer see the process's sockets, and ssh-agent(1) does this",
		})
	}
	return rules
}

// listenerRule keeps the command from installing a supervisor. The kernel refuses that only
// while another one lives. Afterwards the newer filter would decide what this one hands over.
func listenerRule() rule {
	const setFilter, newListener = 1, 1 << 3 // SECCOMP_SET_MODE_FILTER
	return rule{
		calls:   []string{"seccomp"},
		clauses: []clause{{[]test{{arg: 0, is: setFilter}, {arg: 1, mask: newListener, is: newListener}}, refuseEBUSY}},
		when:    "SECCOMP_FILTER_FLAG_NEW_LISTENER",
		why:     "a supervisor of the command's own would let pass what this one refuses, when this one has ended",
	}
}

// noDatagrams are the clauses, ahead of those that allow AF_UNIX, which refuse
// Unix datagram sockets: sendmsg(2) has the receiver's address in memory, where
// a filter can't look, and mediating it would cost every program that sends by
// it. The kernel takes SOCK_RAW for SOCK_DGRAM there.
func noDatagrams() []clause {
	const datagram, raw = 2, 3
	var out []clause
	for _, kind := range []uint32{datagram, raw} {
		out = append(out, clause{[]test{{arg: 0, is: AfUnix}, {arg: 1, mask: sockTypeMask, is: kind}}, refuseESOCKTNOSUPPORT})
	}
	return out
}
