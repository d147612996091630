package cmd

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/testkit"
)

func init() { hostsActs["alone"] = actAlone }

// actAlone runs a command that can make no namespace, as in a container.
func actAlone(argv []string) error {
	const load, jump, answer = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{
		{Code: load},
		{Code: jump, Jf: 1, K: unix.SYS_UNSHARE},
		{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: answer, K: unix.SECCOMP_RET_ALLOW},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	path := argv[0]
	for dir := range strings.SplitSeq(os.Getenv("PATH"), ":") {
		if _, err := os.Stat(dir + "/" + argv[0]); err == nil {
			path = dir + "/" + argv[0]
			break
		}
	}
	return syscall.Exec(path, argv, os.Environ())
}

// unshared are the clients that work only in a network of the session's own: they bind a UDP socket, or look where
// an answer comes from.
var unshared = []string{"node c-ares", "node dgram", "sendto"}

// TestHostsShared: where there can be no namespace, the same programs reach the same server, but for a few.
func TestHostsShared(t *testing.T) {
	t.Parallel()
	needShared(t)
	needBed(t)
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := c.bed(t)
			b.alone = true
			c.try(t, b, !slices.Contains(unshared, c.name))
		})
	}
}

// needShared skips a test where hosts are reached from the session's own network only.
func needShared(t *testing.T) {
	t.Helper()
	caps := enforce.Probe()
	testkit.NeedLandlock(t, caps.Landlock, 4, caps.LandlockReason)
}

// TestHostsSharedAttacks: without a namespace, too, what is not allowed does not arrive. TestHostsAttacks has the
// controls.
func TestHostsSharedAttacks(t *testing.T) {
	t.Parallel()
	needShared(t)
	needBed(t)
	for _, a := range hostsAttacks {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.alone = true
			a.confined(t, b)
		})
	}
}

// TestHostsSharedWays: all else that is asked of a run works without a namespace, but for what needs one.
func TestHostsSharedWays(t *testing.T) {
	t.Parallel()
	needShared(t)
	needBed(t)
	// The last ones: without a namespace others reach the server itself, not zsbx.
	needNamespace := []string{"private home", "private pids", "own server", "own servers at this machine's address", "a host that has the same address",
		"own servers with the relay's port", "own servers at this machine's other addresses", "black holes",
		"no network at first", "an open port, zsbx is killed", "many connections to an open port", "an open port whose server begins again",
		"a port that is taken outside", "an open port at this machine's address", "an open port where no server is asked"}
	for _, w := range ways {
		if slices.Contains(needNamespace, w.name) {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.alone = true
			w.try(t, b)
		})
	}
}
