package attack_test

import (
	"os"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/testkit"
)

// TestSocketWaiting: a call waits, times out or is interrupted as without zsbx. The
// interruption needs a program whose signal handlers don't restart calls, which is Python.
func TestSocketWaiting(t *testing.T) {
	needBroker(t)
	testkit.NeedProgram(t, "/usr/bin/python3")
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
