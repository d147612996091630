package enforce_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/internal/testkit"
)

// TestHandOver: what goes on when the supervisor leaves reaches what it
// reached before, and nothing else.
func TestHandOver(t *testing.T) {
	needMediation(t)
	testHandOver(t, true, &fork.Keeper{}, "serve-kept", unix.EACCES)
}

// TestHandOverAtOnce: the supervisor had not yet come to answer anything.
func TestHandOverAtOnce(t *testing.T) {
	needMediation(t)
	testHandOver(t, false, &fork.Keeper{}, "serve-kept", unix.EACCES)
}

// TestHandOverByKeeper: where the process that goes on may not look into the
// session itself, as with Yama, the keeper does; without a keeper, nothing is
// reached.
func TestHandOverByKeeper(t *testing.T) {
	needMediation(t)
	testHandOver(t, true, &fork.Keeper{}, "serve-kept-apart", unix.EACCES)
	testHandOver(t, true, nil, "serve-kept-apart", unix.EIO)
}

// TestHandOverStalled: a call that the command makes last does not keep the
// supervisor from leaving.
func TestHandOverStalled(t *testing.T) {
	needMediation(t)
	p := newPlace(t)
	c := &fork.Command{Path: self(t), Dir: p.in, Env: []string{"ZSBX_TEST_ACT=stall", "GOMAXPROCS=4"}, Keeper: &fork.Keeper{},
		Args: []string{"act", "full", p.in + "/own"}}
	m, err := p.plan().ConfineMediated(c)
	if err != nil {
		t.Fatal(err)
	}
	go m.Serve()
	proc, err := fork.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	defer proc.Close()
	testkit.Eventually(t, "a call lasts", connecting)
	begin := time.Now()
	err = m.HandOver(&exec.Cmd{Path: self(t), Args: []string{"zsbx"}, Env: []string{"ZSBX_TEST_ACT=serve-kept"}})
	if d := time.Since(begin); err != nil || d > 10*time.Second {
		t.Errorf("it took %v: %v", d, err)
	}
}

// connecting reports whether a thread of this process stays in connect(2).
func connecting() bool {
	calls, _ := filepath.Glob("/proc/self/task/*/syscall")
	for _, f := range calls {
		stays := true
		for range 10 {
			b, _ := os.ReadFile(f)
			stays = stays && strings.HasPrefix(string(b), fmt.Sprintf("%d ", unix.SYS_CONNECT))
			time.Sleep(time.Millisecond)
		}
		if stays {
			return true
		}
	}
	return false
}

// testHandOver lets the act serve go on. It wants an answer of afterTurn: EIO
// says that the session does not even reach itself.
func testHandOver(t *testing.T, served bool, keeper *fork.Keeper, serve string, want unixErrno) {
	p := newPlace(t)
	state, err := os.Create(p.dir + "/state")
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	if keeper != nil {
		keeper.Keep, keeper.State = true, state
	}
	d := listenOutside(t, "unix", p.out+"/sock")
	c := &fork.Command{Path: self(t), Dir: p.in, Env: []string{"ZSBX_TEST_ACT=after-turn"}, Keeper: keeper,
		Args: []string{"act", p.in + "/own", p.out + "/sock", p.in + "/mine", p.in + "/yours"}}
	m, err := p.plan().ConfineMediated(c)
	if err != nil {
		t.Fatal(err)
	}
	if served {
		go m.Serve()
	}
	proc, err := fork.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	defer proc.Close()
	ready := func() {
		if err := turn(p.in+"/ready", p.in+"/mine"); err != nil {
			t.Fatal(err)
		}
	}
	if served {
		ready()
	}
	err = m.HandOver(&exec.Cmd{Path: self(t), Args: []string{"zsbx"}, Env: []string{"ZSBX_TEST_ACT=" + serve}})
	if err != nil {
		t.Fatal(err)
	}
	if !served {
		ready()
	}
	if err := os.WriteFile(p.in+"/yours", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := keptStatus(t, proc, state); got != want || d.reached.Load() != 0 {
		t.Errorf("keeper %v: got %v, want %v; %d connections", keeper != nil, got, want, d.reached.Load())
	}
	if err := m.Serve(); err == nil {
		t.Error("served twice")
	}
}

// keptStatus waits for the command's end and gives its exit status. The
// connection to a keeper is another's by now, so it is the keeper's file that
// tells.
func keptStatus(t *testing.T, proc *fork.Process, state *os.File) unixErrno {
	t.Helper()
	for i := 0; proc.KeeperPid != 0 && i < 1000; i++ {
		if s, err := fork.ReadKeeperState(state); err == nil && s.Phase >= fork.PhaseKept {
			return unixErrno(unix.WaitStatus(s.WaitStatus).ExitStatus())
		}
		time.Sleep(5 * time.Millisecond)
	}
	for {
		ev, err := proc.Next()
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == fork.Exited {
			return unixErrno(ev.Status.ExitStatus())
		}
	}
}

// serveKeptApart goes on without the calls that ptrace(2)'s rules are about, as
// Yama refuses them.
func serveKeptApart() error {
	return then(func() error { return refuseCalls(unix.SYS_PIDFD_GETFD, unix.SYS_PROCESS_VM_READV) }, enforce.ServeKept)
}

// afterTurn connects to a socket of its own, made before its turn, and then to
// one outside: what the latter is answered is the result.
func afterTurn(a []string) error {
	fd, err := serveOwn(a[0])
	if err != nil {
		return err
	}
	go drain(fd)
	if err := turn(a[2], a[3]); err != nil {
		return err
	}
	if err := rawConnect(unix.SOCK_STREAM, unixAddress(a[0])); err != nil {
		return unix.EIO
	}
	return rawConnect(unix.SOCK_STREAM, unixAddress(a[1]))
}

// TestSocketWaiting: a call that waits, times out or is interrupted does so as
// without zsbx. The interruption needs a program whose signal handlers don't
// restart calls: Python.
func TestSocketWaiting(t *testing.T) {
	needMediation(t)
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("python3 is needed")
	}
	p := newPlace(t)
	if err := os.WriteFile(p.in+"/wait.py", []byte(waitScript), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, plan := range []*enforce.Plan{nil, p.plan()} {
		os.Remove(p.in + "/full")
		status, out := p.sh(t, plan, "/usr/bin/python3 wait.py")
		const want = "interrupted\nnonblocking 11\ntimeout 11\nwaited\ntcp interrupted\ntcp refused"
		if status != 0 || out != want {
			t.Errorf("confined %v: exit status %d:\n%s", plan != nil, status, out)
		}
	}
}

const waitScript = `
import signal, socket, struct, threading
class Alarm(Exception): pass
def alarm(*_): raise Alarm()
signal.signal(signal.SIGALRM, alarm)
def unix(timeout=None):
    c = socket.socket(socket.AF_UNIX)
    if timeout: c.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack('ll', 0, timeout))
    c.connect('full')
    return c
l = socket.socket(socket.AF_UNIX); l.bind('full'); l.listen(0)
held = [unix()]
signal.setitimer(signal.ITIMER_REAL, 0.2)
try: unix(); print('connected')
except Alarm: print('interrupted')
c = socket.socket(socket.AF_UNIX); c.setblocking(False)
try: c.connect('full')
except OSError as e: print('nonblocking', e.errno)
try: unix(100000)
except OSError as e: print('timeout', e.errno)
threading.Timer(0.2, l.accept).start()
held.append(unix()); print('waited')
tcp = socket.socket(); tcp.bind(('127.0.0.1', 0)); tcp.listen(0)
for _ in range(3):
    c = socket.socket(); c.setblocking(False)
    try: c.connect(tcp.getsockname())
    except OSError: pass
    held.append(c)
signal.setitimer(signal.ITIMER_REAL, 0.4)
try: socket.create_connection(tcp.getsockname()); print('connected')
except Alarm: print('tcp interrupted')
signal.setitimer(signal.ITIMER_REAL, 0)
free = socket.socket(); free.bind(('127.0.0.1', 0))
try: socket.socket().connect(free.getsockname())
except ConnectionRefusedError: print('tcp refused')
`
