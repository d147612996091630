package attack_test

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/enforce/answer"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// TestDecideOthers compares the plan's answers about sockets, ports, processes and system calls
// with the kernel's.
func TestDecideOthers(t *testing.T) {
	needLandlock(t, 6)
	open, closed := serveTCP(t), serveTCP(t)
	free := func() int {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().(*net.TCPAddr).Port
	}
	freeOpen, freeClosed := free(), free()
	victim := exec.Command("sleep", "60")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { victim.Process.Kill(); victim.Wait() })
	pid := strconv.Itoa(victim.Process.Pid)

	for _, mode := range []resolve.NetMode{resolve.NetOpen, resolve.NetPorts, resolve.NetNone} {
		t.Run(string(mode), func(t *testing.T) {
			p := newPlace(t)
			for _, name := range []string{"allowed", "other"} {
				l, err := net.Listen("unix", p.out+"/"+name)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { l.Close() })
			}
			abstract, err := net.Listen("unix", "@zsbx-decide-"+strconv.Itoa(os.Getpid())+string(mode))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { abstract.Close() })
			p.policy.Net = resolve.ResolvedNet{Mode: mode}
			if mode == resolve.NetPorts {
				p.policy.Net.ConnectTCP = []policy.Port{{Number: uint16(open)}}
				p.policy.Net.BindTCP = []policy.Port{{Number: uint16(freeOpen)}}
			}
			id, kind := fileID(t, p.out+"/allowed")
			p.policy.Net.Unix = []resolve.Path{{Path: p.out + "/allowed", ID: id, Mode: kind}}
			plan := p.plan()
			for _, x := range []struct {
				act  enforce.Act
				deed string
				args []string
			}{
				{enforce.Act{Op: enforce.ActConnect, Port: uint16(open)}, "tcp4", []string{strconv.Itoa(open)}},
				{enforce.Act{Op: enforce.ActConnect, Port: uint16(closed)}, "tcp6", []string{strconv.Itoa(closed)}},
				{enforce.Act{Op: answer.Bind, Port: uint16(freeOpen)}, "bind-tcp", []string{strconv.Itoa(freeOpen)}},
				{enforce.Act{Op: answer.Bind, Port: uint16(freeClosed)}, "bind-tcp", []string{strconv.Itoa(freeClosed)}},
				{enforce.Act{Op: enforce.ActConnect, Path: p.out + "/allowed"}, "unix", []string{p.out + "/allowed"}},
				{enforce.Act{Op: enforce.ActConnect, Path: p.out + "/other"}, "unix", []string{p.out + "/other"}},
				{enforce.Act{Op: enforce.ActConnect, Name: abstract.Addr().String()[1:]}, "unix", []string{abstract.Addr().String()}},
				{enforce.Act{Op: answer.Bind, Path: p.in + "/s"}, "bind-unix", []string{p.in + "/s"}},
				{enforce.Act{Op: answer.Bind, Path: p.out + "/s"}, "bind-unix", []string{p.out + "/s"}},
				{enforce.Act{Op: answer.Signal}, "kill", []string{pid}},
				{enforce.Act{Op: answer.Trace}, "ptrace", []string{pid}},
				{enforce.Act{Op: answer.Call, Name: "socket", Args: [6]uint64{unix.AF_INET, unix.SOCK_DGRAM, 0}}, "socket", []string{"2", "2", "0"}},
				{enforce.Act{Op: answer.Call, Name: "socket", Args: [6]uint64{unix.AF_UNIX, unix.SOCK_DGRAM, 0}}, "socket", []string{"1", "2", "0"}},
				{enforce.Act{Op: answer.Call, Name: "socket", Args: [6]uint64{unix.AF_VSOCK, unix.SOCK_STREAM, 0}}, "socket", []string{"40", "1", "0"}},
				{enforce.Act{Op: answer.Call, Name: "bpf"}, "bpf", nil},
				{enforce.Act{Op: answer.Call, Name: "keyctl"}, "keyctl", nil},
				{enforce.Act{Op: answer.Call, Name: "unshare", Args: [6]uint64{unix.CLONE_NEWUSER}}, "userns", nil},
				{enforce.Act{Op: answer.Call, Name: "clone3"}, "clone3", nil},
				{enforce.Act{Op: answer.Call, Name: "getpid"}, "nothing", nil},
			} {
				want := plan.Decide(x.act)
				got, name := p.try(t, plan, x.deed, x.args...), ""
				if got != 0 {
					name = unix.ErrnoName(got)
				}
				if want.Errno != name || (want.Verdict == enforce.Refused) != (got != 0) {
					t.Errorf("%s %q: the kernel says %q, the plan %s %q by %q", x.deed, x.args, name, want.Verdict, want.Errno, want.By)
				}
				if want.Verdict == enforce.Refused && want.Reason == "" {
					t.Errorf("%s %q: no reason", x.deed, x.args)
				}
			}
		})
	}
}
