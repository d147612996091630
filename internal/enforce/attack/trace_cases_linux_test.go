package attack_test

import (
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
)

// refusedCase is a script that gets refusals, in decidePlace. Lines that begin with "py " are
// for Python.
type refusedCase struct {
	name, script string
	net          resolve.NetMode
	modes        bool // some of it is refused without zsbx, too
}

func refusedCases() []refusedCase {
	return []refusedCase{
		{name: "read", script: `cat $OUT/file`},
		{name: "read by a link", script: `ln -s $OUT/file l && cat l`},
		{name: "read by two links", script: `ln -s $OUT d && ln -s d/file l && cat l`},
		{name: "list", script: `ls $OUT`},
		{name: "write", script: `echo x >$OUT/file`},
		{name: "append", script: `echo x >>$OUT/file`},
		{name: "create", script: `echo x >$OUT/new`},
		{name: "create by a dangling link", script: `ln -s $OUT/new l && echo x >l`},
		{name: "truncate", script: `truncate -s 0 $OUT/file`},
		{name: "truncate(2)", script: `py os.truncate(out + "/file", 0)`},
		{name: "open to truncate", script: `py os.open("../ro/file", os.O_RDONLY | os.O_TRUNC)`},
		{name: "mkdir", script: `mkdir $OUT/d`},
		{name: "mkdir with a slash", script: `mkdir $OUT/d/`},
		{name: "rmdir", script: `rmdir ../ro/sub/s ../ro/sub`},
		{name: "unlink", script: `rm -f $OUT/file`},
		{name: "unlink what is missing", script: `rm -f $OUT/nothing`},
		{name: "rename out", script: `py os.rename("file", out + "/file2")`},
		{name: "rename in", script: `py os.rename(out + "/file", "f2")`},
		{name: "rename between trees", script: `py os.rename("file", "../noexec/f")`},
		{name: "rename within a read-only one", script: `py os.rename("../ro/file", "../ro/f")`},
		{name: "move", script: `mv ../ro/file .`},
		{name: "exchange", script: `py libc.syscall(316, -100, b"file", -100, b"../ro/file", 2)`},
		{name: "link out", script: `ln file $OUT/l`},
		{name: "link in", script: `ln $OUT/file l`},
		{name: "symlink", script: `ln -s x $OUT/l`},
		{name: "mkfifo", script: `mkfifo $OUT/p`},
		{name: "mknod", script: `mknod c c 1 3`},
		{name: "chmod", script: `chmod 600 $OUT/file`},
		{name: "fchmod", script: `py os.fchmod(os.open("../ro/file", os.O_RDONLY), 0o600)`},
		{name: "touch", script: `touch $OUT/file ../ro/file`},
		{name: "chown", script: `chown $(id -u) ../ro/file`},
		{name: "setxattr", script: `py os.setxattr("../ro/file", "user.x", b"y")`},
		{name: "exec", script: `$OUT/prog`},
		{name: "exec of what may be read only", script: `../noexec/file`},
		{name: "a script's interpreter", script: `printf '#!%s/prog\n' $OUT >s && chmod +x s && ./s`},
		{name: "no interpreter", script: `printf '#!/no/such\n' >s && chmod +x s && ./s`},
		{name: "posix_spawn", script: `py os.posix_spawn(out + "/prog", ["prog"], {})`},
		{name: "vfork", script: `py subprocess.run([out + "/prog"])`},
		{name: "execveat", script: `py libc.syscall(322, -100, (out + "/prog").encode(), None, None, 0)`},
		{name: "openat2", script: `py libc.syscall(437, -100, (out + "/file").encode(), ctypes.byref((ctypes.c_uint64 * 3)(0, 0, 0)), 24)`},
		{name: "relative to a descriptor", script: `py d = os.open("..", os.O_PATH); os.open("out/file", os.O_RDONLY, dir_fd=d)`},
		{name: "a temporary file", script: `py os.open("../ro", os.O_TMPFILE | os.O_RDWR)`},
		{name: "8 threads", script: `py def f():
py     for i in range(20):
py         try: open(out + "/file")
py         except OSError: pass
py t = [threading.Thread(target=f) for i in range(8)]; [x.start() for x in t]; [x.join() for x in t]; sys.exit(3)`},
		{name: "many processes", script: `for i in 1 2 3 4 5 6 7 8; do cat $OUT/file & done; wait; exit 3`},
		{name: "denied", script: `cat .env; echo x >>.env; rm .env; mv .env e`},
		{name: "denied directory", script: `cat keys/id; ls keys; echo x >keys/new`},
		{name: "git's configuration", script: `echo x >>.git/config`},
		{name: "git's configuration replaced", script: `cp .git/config c && mv c .git/config`},
		{name: "a hook", script: `echo x >.git/hooks/new; rm .git/hooks/h`},
		{name: "git's directory", script: `py os.rename(".git", "g")`},
		{name: "a port", script: `py socket.create_connection(("127.0.0.1", port))`, net: resolve.NetPorts},
		{name: "a port over IPv6", script: `py socket.create_connection(("::1", port))`, net: resolve.NetPorts},
		{name: "listening", script: `py socket.socket().bind(("127.0.0.1", 40123))`, net: resolve.NetPorts},
		{name: "no port", script: `py socket.create_connection(("127.0.0.1", port))`, net: resolve.NetNone},
		{name: "UDP", script: `py socket.socket(socket.AF_INET, socket.SOCK_DGRAM)`, net: resolve.NetPorts},
		{name: "a socket", script: `py socket.socket(socket.AF_UNIX).connect(out + "/sock")`},
		{name: "an abstract socket", script: `py socket.socket(socket.AF_UNIX).connect("\0" + abstract)`},
		{name: "a datagram socket", script: `py socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)`},
		{name: "binding a socket", script: `py socket.socket(socket.AF_UNIX).bind(out + "/s")`},
		{name: "an unknown family", script: `py socket.socket(socket.AF_VSOCK)`},
		{name: "kill", script: `kill -TERM $VICTIM`},
		{name: "tgkill", script: `py libc.syscall(234, victim, victim, 15)`},
		{name: "ptrace", script: `py libc.ptrace(16, victim, 0, 0)`},
		{name: "another process's environment", script: `cat /proc/$VICTIM/environ`},
		{name: "another process's memory", script: `py libc.process_vm_readv(victim, 0, 0, 0, 0, 0)`},
		{name: "oom_score_adj", script: `echo 0 >/proc/$VICTIM/oom_score_adj; echo 0 >/proc/self/oom_score_adj`},
		{name: "a user namespace", script: `unshare -U true`},
		{name: "mount", script: `mount --bind . sub`},
		{name: "keys", script: `py libc.syscall(250, 0, 0, 0)`},
		{name: "priorities of others", script: `renice 5 $VICTIM`},
		{name: "no directory", script: `mkdir d && cd d && rmdir ../d && cat x`},
		{name: "missing", script: `cat nothing; cat $OUT/nothing; cat $OUT/no/thing`, modes: true},
		{name: "modes", script: `touch n; chmod 0 n; cat n; cat $OUT/none`, modes: true},
		{name: "a name with controls", script: `py open(out + "/a\n\x1b[31m")`},
		{name: "a device", script: `head -c 1 /dev/zero`},
		{name: "much at once", script: `cp -a . $OUT/copy; cp -a $OUT copy; tar cf $OUT/x.tar .; find $OUT /root -maxdepth 1 >/dev/null`, modes: true},
	}
}

// abstracts counts the abstract sockets that tests listen on, so that each has its own name.
var abstracts atomic.Int64

// outsiders sets up what the cases are refused.
func outsiders(t *testing.T, p *place) (env []string) {
	t.Helper()
	for _, f := range []string{"prog", "a\n\x1b[31m"} {
		if err := os.WriteFile(p.out+"/"+f, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(p.out+"/none", nil, 0); err != nil {
		t.Fatal(err)
	}
	abstract := fmt.Sprintf("zsbx-watch-%d-%d", os.Getpid(), abstracts.Add(1))
	port := ""
	for _, l := range [][2]string{{"unix", p.out + "/sock"}, {"unix", "@" + abstract}, {"tcp", ":0"}} {
		s, err := net.Listen(l[0], l[1])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		if a, tcp := s.Addr().(*net.TCPAddr); tcp {
			port = strconv.Itoa(a.Port)
		}
	}
	return append(shellEnv(p), "ABSTRACT="+abstract, "PORT="+port)
}

// asShell returns a shell's arguments for a case.
func (c refusedCase) asShell(t *testing.T, p *place) []string {
	t.Helper()
	lines, py := strings.Split(c.script, "\n"), ""
	for _, l := range lines {
		if rest, ok := strings.CutPrefix(l, "py "); ok {
			py += rest + "\n"
		}
	}
	if py == "" {
		return []string{"/bin/sh", "-c", c.script}
	}
	head := `import os, sys, socket, subprocess, threading, ctypes
out, abstract, port, victim = os.environ["OUT"], os.environ["ABSTRACT"], int(os.environ["PORT"]), int(os.environ["VICTIM"])
libc = ctypes.CDLL(None, use_errno=True)
`
	write(t, p.in+"/case.py", head+py)
	return []string{"/usr/bin/python3", p.in + "/case.py"}
}

var straceLine = regexp.MustCompile(`^\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed).*= -1 (E\w+) `)

// truth runs a case under strace(1) and counts each failed call and its error.
func truth(t *testing.T, p *place, plan *enforce.Plan, env, argv []string) map[string]int {
	t.Helper()
	file := p.dir + "/noexec/strace.out"
	run(t, plan, &fork.Command{Path: "/usr/bin/strace", Args: append([]string{"strace", "-f", "-o", file, "--"}, argv...), Dir: p.in, Env: env, Keeper: &fork.Keeper{}})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(file)
	out := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if m := straceLine.FindStringSubmatch(line); m != nil && slices.Contains(ours(), m[2]) && !slices.Contains(neverOurs(), m[1]) {
			out[m[1]+" "+m[2]]++
		}
	}
	return out
}

// ours returns the errors that a plan may cause. neverOurs returns calls that no plan affects.
func ours() []string {
	return []string{"EACCES", "EPERM", "EROFS", "EXDEV", "EBUSY", "EAFNOSUPPORT", "ESOCKTNOSUPPORT", "EPROTONOSUPPORT"}
}

func neverOurs() []string {
	return []string{"access", "faccessat", "faccessat2", "stat", "lstat", "newfstatat", "statx", "readlink", "readlinkat", "chdir", "getxattr", "lgetxattr", "capset", "setgroups"}
}

// TestWatchTruth compares what is recorded with what strace(1) sees.
func TestWatchTruth(t *testing.T) {
	needLandlock(t, 1)
	needMounts(t)
	testkit.NeedProgram(t, "/usr/bin/python3")
	testkit.NeedProgram(t, "/usr/bin/strace")
	for _, c := range refusedCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			victim := startVictim(t)
			place := func() (*place, []string, []string) {
				p := decidePlace(t)
				p.policy.Net.Mode = resolve.NetOpen
				if c.net != "" {
					p.policy.Net.Mode = c.net
				}
				p.deny(p.in + "/none")
				env := append(outsiders(t, p), "VICTIM="+victim)
				return p, env, c.asShell(t, p)
			}
			p, env, argv := place()
			want := truth(t, p, p.mountPlan(), env, argv)
			ordinary := map[string]int{}
			if c.modes {
				p, env, argv = place()
				ordinary = truth(t, p, nil, env, argv)
			}
			p, env, argv = place()
			plain, _ := run(t, p.mountPlan(), &fork.Command{Path: argv[0], Args: argv, Dir: p.in, Env: env, Keeper: &fork.Keeper{}})
			p, env, argv = place()
			status, out, got := watched(t, p, env, argv...)

			if plain.ExitStatus() != status {
				t.Errorf("exit status %d, without being watched %d: %s", status, plain.ExitStatus(), out)
			}
			seen := map[string]int{}
			for _, x := range got.List {
				key := x.Call + " " + x.Errno
				seen[key] += x.Count
				switch {
				case !x.Proved:
					t.Errorf("not proved: %s", key)
				case x.Unknown():
					t.Errorf("nobody knows why: %s %s", key, x.Act.Path)
				case !x.Ordinary && x.Answer.Reason == "":
					t.Errorf("no reason: %s %s", key, x.Act.Path)
				case !x.Ordinary && slices.Contains(ours(), x.Errno) && want[key] == 0:
					t.Errorf("invented: %s", key)
				}
			}
			for key, n := range want {
				if missing := n - seen[key]; missing > 0 && missing > ordinary[key] {
					t.Errorf("%s: %d times, recorded %d, without zsbx %d", key, n, seen[key], ordinary[key])
				}
			}
			if t.Failed() {
				t.Logf("strace: %v\nrecorded:\n%s\n%s", want, strings.ReplaceAll(strings.Join(said(got), "\n"), p.dir, "…"), out)
			}
		})
	}
}
