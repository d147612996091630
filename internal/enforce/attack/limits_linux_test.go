package attack_test

import (
	"fmt"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/fork"
)

// TestKnownLimits has what Landlock does not check according to docs/security.md. If a kernel
// refuses one of these, the document is wrong, not the policy.
func TestKnownLimits(t *testing.T) {
	needLandlock(t, 1)
	for _, a := range []attack{
		{act: "stat", args: []string{"OUT/file"}},
		{act: "chdir", args: []string{"OUT"}},
		{act: "path", args: []string{"OUT/file"}},
		{act: "chmod", args: []string{"OUT/file"}},
		{act: "utime", args: []string{"OUT/file"}},
		{act: "memfd", args: []string{"OUT/ro/true"}},
		{act: "flock", args: []string{"OUT/ro/file"}},
		{act: "read-lock", args: []string{"OUT/ro/file"}},
		{act: "inotify", args: []string{"OUT"}},
	} {
		t.Run(a.name(), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			filePlace(t, p)
			data, err := os.ReadFile("/bin/true")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p.out+"/ro/true", data, 0o755); err != nil {
				t.Fatal(err)
			}
			if got := p.try(t, p.plan(), a.act, p.fill(a.args)...); got != 0 {
				t.Errorf("got %v: the document has to be changed", got)
			}
		})
	}
}

// TestKnownLimitPipe: a command that reads from a pipe can also write to it, and another reader
// gets that.
func TestKnownLimitPipe(t *testing.T) {
	needLandlock(t, 1)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	p := newPlace(t)
	runFiles(t, p.plan(), &fork.Command{Path: "/bin/sh", Args: []string{"sh", "-c", "echo x >/proc/self/fd/0"}, Dir: p.in, Files: []*os.File{r, nil, nil}})
	w.Close()
	if got, err := io.ReadAll(r); string(got) != "x\n" {
		t.Errorf("got %q, %v: the document has to be changed", got, err)
	}
}

// TestKnownLimitSystemV: shared memory of another program of the same user can be attached. It
// has no path, and a filter sees only its number.
func TestKnownLimitSystemV(t *testing.T) {
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) }()
	mem, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	mem[0] = 'x'
	p := newPlace(t)
	if got := p.try(t, p.plan(), "shm", fmt.Sprint(id)); got != 0 {
		t.Errorf("got %v: the document has to be changed", got)
	}
}
