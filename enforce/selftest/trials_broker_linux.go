package selftest

import (
	"context"
	"fmt"
	"net"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/policy"
)

// tryBroker has sockets that a process inherits reach elsewhere, and has whoever
// makes connections for it use more than the process has. Where no supervisor can
// be had, a command is not started with such sockets.
func (s *scene) tryBroker(caps enforce.Caps) ([]Proof, error) {
	var out []Proof
	if caps.Seccomp && caps.SeccompNotify {
		addr := &unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: [4]byte{127, 0, 0, 1}, Port: uint16(s.port>>8 | s.port<<8)}
		idle := call("shutdown(2)", unix.SYS_SHUTDOWN, nil, 0, unix.SHUT_RD)
		for _, t := range []trial{
			{name: enforce.GapNetwork, promise: "no network: an inherited socket, listening anew", means: "zsbx",
				steps: []fork.Step{idle, call("listen(2)", unix.SYS_LISTEN, nil, 0, 1)}},
			{name: enforce.GapNetwork, promise: "no network: an inherited socket, fast open", means: "seccomp",
				steps: []fork.Step{idle, call("sendto(2) MSG_FASTOPEN", unix.SYS_SENDTO, addr,
					0, uintptr(unsafe.Pointer(addr)), 1, unix.MSG_FASTOPEN, uintptr(unsafe.Pointer(addr)), unix.SizeofSockaddrInet4)}},
		} {
			p, err := s.tryInherited(caps, t)
			if err != nil {
				return out, err
			}
			out = append(out, p)
		}
	}
	if caps.Capabilities&(1<<unix.CAP_NET_ADMIN) == 0 {
		return out, nil
	}
	t := trial{name: "capabilities", promise: "root without the capabilities that builds don't need: netlink to other programs",
		means: "capset", net: policy.NetOpen, steps: netlinkSteps()}
	if free, err := inChild(nil, t.steps); err != nil || free < 0 {
		return out, err // a network namespace of somebody else's
	}
	p, err := s.try(caps, t)
	return append(out, p), err
}

// netlinkSteps connect to a program that isn't there.
func netlinkSteps() []fork.Step {
	addr := &unix.RawSockaddrNetlink{Family: unix.AF_NETLINK, Pid: 1 << 30}
	return []fork.Step{
		call("socket(2)", unix.SYS_SOCKET, nil, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE),
		call("connect(2) to a netlink port", unix.SYS_CONNECT, addr, 0, uintptr(unsafe.Pointer(addr)), unix.SizeofSockaddrNetlink),
	}
}

// tryInherited makes a trial's attack with a listening socket as standard input.
func (s *scene) tryInherited(caps enforce.Caps, t trial) (Proof, error) {
	r := *s.policy
	r.Net = policy.ResolvedNet{Mode: policy.NetNone}
	var answers [2]int
	for i, plan := range []*enforce.Plan{enforce.NewPlanWith(&r, caps, nil, enforce.Options{Sockets: true}), nil} {
		var plain net.ListenConfig
		plain.SetMultipathTCP(false) // it has no fast open before Linux 6.2
		l, err := plain.Listen(context.Background(), "tcp4", "127.0.0.1:0")
		if err != nil {
			return Proof{}, err
		}
		f, err := l.(*net.TCPListener).File()
		l.Close()
		if err != nil {
			return Proof{}, fmt.Errorf("a socket to pass on: %w", err)
		}
		answers[i], err = inChildWith(plan, []*os.File{f}, t.steps)
		f.Close()
		if err != nil {
			return Proof{}, err
		}
	}
	return proof(t, t.steps[len(t.steps)-1].Name, answers[0], answers[1]), nil
}
