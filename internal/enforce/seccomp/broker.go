package seccomp

import (
	"fmt"
	"slices"
)

// CapSysPtrace is CAP_SYS_PTRACE. With it the broker can look into processes that are not
// dumpable.
const CapSysPtrace = 19

// YamaRefuses returns why the Yama security module keeps a broker from fetching its command's
// sockets, or "" if it does not (proc_sys_kernel(5), ptrace_scope). The broker is an ancestor,
// so scope 1 allows it.
func YamaRefuses(scope byte, capabilities uint64) string {
	const what = "the Yama security module lets %s fetch the sockets of another process " +
		"(kernel.yama.ptrace_scope is %c)"
	switch {
	case scope == '2' && capabilities&(1<<CapSysPtrace) == 0:
		return fmt.Sprintf(what, "only CAP_SYS_PTRACE", scope)
	case scope == '3':
		return fmt.Sprintf(what, "nobody", scope)
	}
	return ""
}

// socketRules hand the calls that connect a socket or make it listen to the broker.
func socketRules(capabilities uint64) []rule {
	rules := []rule{
		refuse(actNotify, "sockets may connect only to sockets of the session and to allowed ones", "connect"),
		refuse(actNotify, "a socket that listens counts as the session's from then on", "listen"),
	}
	if capabilities&(1<<CapSysPtrace) == 0 {
		const setDumpable = 4 // PR_SET_DUMPABLE
		rules = append(rules, rule{
			calls:   []string{"prctl"},
			clauses: []clause{{[]test{{arg: 0, is: setDumpable}, {arg: 1}, {arg: 1, high: true}}, pretendSuccess}},
			when:    "PR_SET_DUMPABLE to 0",
			why:     "the broker could no longer see the process's sockets; ssh-agent(1) does this",
		})
	}
	return rules
}

// listenerRule keeps the command from installing another supervisor. The kernel refuses one only
// while the broker lives. After the broker has ended, the newer filter would decide the calls
// that this one hands over.
func listenerRule() rule {
	const setFilter, newListener = 1, 1 << 3 // SECCOMP_SET_MODE_FILTER
	return rule{
		calls:   []string{"seccomp"},
		clauses: []clause{{[]test{{arg: 0, is: setFilter}, {arg: 1, mask: newListener, is: newListener}}, refuseEBUSY}},
		when:    "SECCOMP_FILTER_FLAG_NEW_LISTENER",
		why:     "once the broker has ended, another supervisor would allow what the broker refuses",
	}
}

// noDatagrams returns clauses that refuse Unix datagram sockets. They must come before those
// that allow AF_UNIX. sendmsg(2) has the receiver's address in memory, where a filter can't
// look. Asking the broker would slow down every program that sends messages. For AF_UNIX the
// kernel treats SOCK_RAW as SOCK_DGRAM.
func noDatagrams() []clause {
	var out []clause
	for _, kind := range []uint32{sockDatagram, sockRaw} {
		datagrams := []test{{arg: 0, is: AfUnix}, {arg: 1, mask: sockTypeMask, is: kind}}
		out = append(out, clause{datagrams, refuseESOCKTNOSUPPORT})
	}
	return out
}

// splitPairs makes a separate rule for socketpair(2), in which the broker makes pairs of Unix
// datagram sockets. Pairs need no addresses.
func splitPairs(rules []rule) []rule {
	i := slices.IndexFunc(rules, func(r rule) bool { return slices.Contains(r.calls, "socketpair") })
	pairs := rules[i]
	rules[i].calls = []string{"socket"}
	pairs.calls = []string{"socketpair"}
	pairs.clauses = slices.Clone(pairs.clauses)
	for n := range pairs.clauses {
		if pairs.clauses[n].answer == refuseESOCKTNOSUPPORT {
			pairs.clauses[n].answer = actNotify
		}
	}
	return append(rules, pairs)
}
