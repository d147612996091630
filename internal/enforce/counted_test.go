package enforce

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// TestCounted counts what gaps leave open on a machine made of a table.
func TestCounted(t *testing.T) {
	machine := fstest.MapFS{
		"proc/1/x": {}, "proc/7/x": {}, "proc/self/x": {}, "dev/pts/0": {}, "dev/pts/ptmx": {}, "home/me/a": {}, "home/me/b": {}, "home/me/.c": {},
		"dev/shm/x": {}, "proc/sysvipc/shm": {Data: []byte("key\n0\n1\n")}, "proc/sysvipc/sem": {Data: []byte("key\n")},
		"proc/net/unix": {Data: []byte("Num RefCount Protocol Flags Type St Inode Path\n" +
			"0: 2 0 00010000 0001 01 1 /run/a\n0: 2 0 00010000 0001 01 2 @b\n0: 2 0 00010000 0001 01 3 /run/c\n0: 3 0 00000000 0001 03 4 /run/a\n")},
	}
	p := &policy.Policy{}
	r, err := resolve.Policy(p, host.Host{
		OS: "linux", Home: "/home/me", Dir: "/home/me", UID: 5,
		Lstat: func(name string) (host.Stat, error) {
			if name == "/proc/1" {
				return host.Stat{Mode: fs.ModeDir}, nil
			}
			return host.Stat{Mode: fs.ModeDir, UID: 5}, nil
		},
		Readlink: func(string) (string, error) { return "", os.ErrInvalid },
		ReadDir:  func(dir string, _ int) ([]fs.DirEntry, error) { return machine.ReadDir(strings.TrimPrefix(dir, "/")) },
		ReadFile: func(name string) ([]byte, error) { return machine.ReadFile(strings.TrimPrefix(name, "/")) },
	})
	if err != nil {
		t.Fatal(err)
	}
	plan := &Plan{Policy: r, denied: 5, open: 2}
	for name, want := range map[string]string{
		GapSignals: "1 process", GapPids: "2 processes", GapTerminals: "1 terminal", GapHome: "3 entries of /home/me", GapDeny: "2 of 5 denied files",
		GapUnixSockets: "2 sockets", GapAbstractSockets: "1 socket", GapIPC: "3 segments, semaphore sets and queues", GapKernel: "",
	} {
		gaps := []Gap{{Name: name}}
		if got := plan.Counted(gaps)[0].GivesUp; got != want || gaps[0].GivesUp != "" {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
