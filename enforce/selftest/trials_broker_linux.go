package selftest

import (
	"context"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/policy"
)

// brokerTrials have sockets that a process inherits reach elsewhere, and have whoever
// makes connections for it use more than the process has. Where no supervisor can
// be had, a command is not started with such sockets.
func (s *linuxScene) brokerTrials(caps enforce.Caps) []trial {
	var out []trial
	if caps.Seccomp && caps.SeccompNotify {
		r := *s.policy
		r.Net = policy.ResolvedNet{Mode: policy.NetNone}
		plan := enforce.NewPlanWith(&r, caps, nil, enforce.Options{Sockets: true})
		inherited := func(what, means string, attack fork.Step) trial {
			idle := call("shutdown(2)", unix.SYS_SHUTDOWN, 0, unix.SHUT_RD)
			return trial{name: enforce.GapNetwork, promise: "no network: an inherited socket, " + what, means: means, plan: plan, stdin: listener,
				steps: []fork.Step{idle, attack}}
		}
		out = append(out, inherited("listening anew", "zsbx", call("listen(2)", unix.SYS_LISTEN, 0, 1)),
			inherited("fast open", "seccomp", fastOpen(loopback(s.port))))
	}
	if caps.Capabilities&(1<<unix.CAP_NET_ADMIN) != 0 {
		t := trial{name: "capabilities", promise: "root without the capabilities that builds don't need: netlink to other programs",
			means: "capset", steps: netlinkSteps()}
		if free, err := inChild(nil, nil, t.steps); err != nil || free >= 0 { // else it is a network namespace of somebody else's
			out = append(out, t)
		}
	}
	return out
}

// netlinkSteps connect to a program that isn't there.
func netlinkSteps() []fork.Step {
	addr := put(unix.RawSockaddrNetlink{Family: unix.AF_NETLINK, Pid: 1 << 30})
	return []fork.Step{
		call("socket(2)", unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE),
		call("connect(2) to a netlink port", unix.SYS_CONNECT, 0, addr, unix.SizeofSockaddrNetlink),
	}
}

// listener is a listening socket.
func listener() (*os.File, error) {
	var plain net.ListenConfig
	plain.SetMultipathTCP(false) // it has no fast open before Linux 6.2
	l, err := plain.Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return l.(*net.TCPListener).File()
}
