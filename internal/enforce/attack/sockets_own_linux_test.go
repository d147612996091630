package attack_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
)

// TestSocketStdin: an inherited socket is no way out.
func TestSocketStdin(t *testing.T) {
	needGuard(t)
	p := newPlace(t)
	d := listenOutside(t, "unix", p.out+"/sock")
	for _, plan := range []*enforce.Plan{p.plan(), nil} {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		stdin := os.NewFile(uintptr(fd), "socket")
		exe := self(t)
		ws := runFiles(t, plan, &fork.Command{Path: exe, Args: []string{exe, p.out + "/sock"}, Env: []string{"ZSBX_TEST_ACT=stdin"},
			Files: []*os.File{stdin, os.Stdout, os.Stderr}})
		stdin.Close()
		if plan == nil && ws != 0 || plan != nil && (ws != int(unix.EACCES) || d.reached.Load() != 0) {
			t.Errorf("plan %v: errno %d, %d connections", plan != nil, ws, d.reached.Load())
		}
	}
}

// runFiles runs a command with its own files and returns its exit status.
func runFiles(t *testing.T, plan *enforce.Plan, c *fork.Command) int {
	t.Helper()
	if plan != nil {
		if err := confine(plan, c); err != nil {
			t.Fatal(err)
		}
	}
	proc, err := fork.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	defer proc.Close()
	return await(t, proc).ExitStatus()
}

// TestSocketOwn: sockets work between the session's own processes.
func TestSocketOwn(t *testing.T) {
	needGuard(t)
	p := newPlace(t)
	for _, args := range [][]string{{"unix-own", p.in + "/a"}, {"undumpable", p.in + "/b"}, {"pair"}} {
		if got := p.try(t, p.plan(), args[0], args[1:]...); got != 0 {
			t.Errorf("%v: %v", args, got)
		}
	}
	// A link to a directory on the way, and a path that is not written out.
	if err := os.Symlink(p.in, filepath.Join(p.in, "sub", "up")); err != nil {
		t.Fatal(err)
	}
	if got := p.try(t, p.plan(), "unix-own", "sub/up/../in/c"); got != 0 {
		t.Errorf("through a link: %v", got)
	}
}

// TestSocketCrowd: the broker keeps one file open for each listening socket, up to a limit. At the
// limit the next one is refused, and no socket is forgotten.
func TestSocketCrowd(t *testing.T) {
	needBroker(t)
	const limit, more = 512, 520
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil || files.Cur < 4*limit {
		t.Skipf("%d open files are too few", files.Cur)
	}
	p := newPlace(t)
	for _, tt := range []struct {
		n    int
		plan *enforce.Plan
		want unixErrno
	}{{more, p.plan(), unix.EAGAIN}, {limit, p.plan(), 0}, {more, nil, 0}} {
		dir, err := os.MkdirTemp(p.in, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := p.try(t, tt.plan, "crowd", dir, fmt.Sprint(tt.n)); got != tt.want {
			t.Errorf("%d sockets, confined %v: got %v, want %v", tt.n, tt.plan != nil, got, tt.want)
		}
	}
}

// TestSocketTwinName: each kind of socket has its own abstract names (unix(7)). Having a name
// for one kind gives no right to it for another.
func TestSocketTwinName(t *testing.T) {
	needGuard(t)
	want := unix.EPERM
	if brokerChecks() {
		want = unix.ECONNREFUSED
	}
	kinds := map[string]int{"unix": unix.SOCK_STREAM, "unixpacket": unix.SOCK_SEQPACKET}
	for network, kind := range kinds {
		p := newPlace(t)
		name := fmt.Sprintf("zsbx-twin-%s-%d", network, os.Getpid())
		if got := p.try(t, p.plan(), "twin-name", fmt.Sprint(kind), fmt.Sprint(kind), name); got != 0 {
			t.Errorf("%s: an own name: %v", network, got)
		}
		d := listenOutside(t, network, "@"+name)
		own := kinds["unix"] + kinds["unixpacket"] - kind
		checkAttack(t, p, d, one(want), "twin-name", fmt.Sprint(own), fmt.Sprint(kind), name)
	}
}
