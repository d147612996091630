//go:build linux && amd64

package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/testkit"
)

// scene is what a command could harm.
type scene struct {
	Dir      string // all of it
	Token    string // is in the command line of everything that a run leaves
	TCP, UDP int    // ports on which something listens
	Abstract string
	Pid      int // a process outside
	Shm      int // System V shared memory
	ShmFile  string
	Terminal string

	close []func()
}

func (s *scene) work() string { return s.Dir + "/work" }

// newScene makes a scene, in the directory for temporary files. self is this program.
func newScene(self string) (*scene, error) {
	dir, err := os.MkdirTemp("", "zsbx-faults-")
	if err != nil {
		return nil, err
	}
	s := &scene{Dir: dir, Token: filepath.Base(dir), Abstract: "@" + filepath.Base(dir)}
	s.close = append(s.close, func() { os.RemoveAll(dir) })
	err = s.files(self)
	if err == nil {
		err = errors.Join(s.listen(), s.outsider(), s.memory(), s.pty())
	}
	if err != nil {
		s.end()
		return nil, fmt.Errorf("making the scene: %w", err)
	}
	return s, nil
}

func (s *scene) end() {
	for i := len(s.close) - 1; i >= 0; i-- {
		s.close[i]()
	}
}

// files makes the files anew after each run that may have changed them.
func (s *scene) files(self string) error {
	for _, d := range []string{"work/.git/hooks", "out/dir", "home", "tmp", "state"} {
		if err := os.MkdirAll(filepath.Join(s.Dir, d), 0o700); err != nil {
			return err
		}
	}
	for _, f := range []string{"work/.env", "work/.git/config", "work/.git/hooks/pre-commit", "out/secret", "out/file", "out/short", "out/gone", "out/link"} {
		if err := os.WriteFile(filepath.Join(s.Dir, f), []byte("secret\n"), 0o600); err != nil {
			return err
		}
	}
	b, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	for _, f := range []string{s.work() + "/probe", s.Dir + "/out/prog"} {
		if _, err := os.Stat(f); err == nil {
			continue
		}
		if err := os.WriteFile(f, b, 0o700); err != nil {
			return err
		}
	}
	return nil
}

func (s *scene) listen() error {
	tcp, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.TCP = tcp.Addr().(*net.TCPAddr).Port
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.UDP = udp.LocalAddr().(*net.UDPAddr).Port
	s.close = append(s.close, func() { tcp.Close() }, func() { udp.Close() })
	for _, name := range []string{s.Dir + "/out/socket", s.Abstract} {
		l, err := net.Listen("unix", name)
		if err != nil {
			return err
		}
		s.close = append(s.close, func() { l.Close() })
		go drain(l)
	}
	go drain(tcp)
	return nil
}

// drain accepts connections, so that none waits forever.
func drain(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		c.Close()
	}
}

func (s *scene) outsider() error {
	c := exec.Command("sleep", "100000")
	if err := c.Start(); err != nil {
		return err
	}
	s.Pid = c.Process.Pid
	s.close = append(s.close, func() { c.Process.Kill(); c.Wait() })
	return nil
}

func (s *scene) memory() (err error) {
	s.Shm, err = unix.SysvShmGet(unix.IPC_PRIVATE, 64, unix.IPC_CREAT|0o600)
	if err != nil {
		return err
	}
	s.ShmFile = "/dev/shm/" + s.Token
	s.close = append(s.close, func() { unix.SysvShmCtl(s.Shm, unix.IPC_RMID, nil); os.Remove(s.ShmFile) })
	return os.WriteFile(s.ShmFile, nil, 0o600)
}

func (s *scene) pty() error {
	m, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	s.close = append(s.close, func() { unix.Close(m) })
	n, err := unix.IoctlGetInt(m, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(m, unix.TIOCSPTLCK, 0)
	}
	s.Terminal = "/dev/pts/" + strconv.Itoa(n)
	return err
}

// env returns a clean environment.
func (s *scene) env() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.Dir + "/home", "XDG_STATE_HOME=" + s.Dir + "/state", "TMPDIR=" + s.Dir + "/tmp", "LANG=C.UTF-8"}
}

// command returns the probe's command line. A probe that lingers stays for a while.
func (s *scene) command(mode string) []string {
	b, _ := json.Marshal(s)
	return []string{s.work() + "/probe", "probe", mode, string(b)}
}

// left returns the processes of a run that still exist after they had time to end, zsbx's among
// them.
func (s *scene) left(wait time.Duration) []int {
	for end := time.Now().Add(wait); ; time.Sleep(5 * time.Millisecond) {
		pids := s.pids()
		if len(pids) == 0 || time.Now().After(end) {
			return pids
		}
	}
}

// pids returns the processes with the token in their command line. A zombie has none.
func (s *scene) pids() []int {
	var out []int
	all, _ := os.ReadDir("/proc")
	for _, d := range all {
		pid, err := strconv.Atoi(d.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if b, err := os.ReadFile("/proc/" + d.Name() + "/cmdline"); err == nil && strings.Contains(string(b), s.Token) {
			out = append(out, pid)
		}
	}
	return out
}

// kill ends what a run left.
func (s *scene) kill() {
	for _, pid := range s.pids() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	s.left(testkit.Patience)
}

// records returns the files of existing sessions.
func (s *scene) records() []string {
	var out []string
	for _, p := range []string{"/state/zsbx/sessions/*", "/tmp/zsbx-*/sessions/*"} {
		m, _ := filepath.Glob(s.Dir + p)
		out = append(out, m...)
	}
	return out
}

// reap makes zsbx clear up a session, or --all if there are records. It returns what is wrong if
// something is left.
func (s *scene) reap(zsbx, what string) string {
	if what == "--all" && len(s.records()) == 0 {
		return ""
	}
	c := exec.Command(zsbx, "reap", what)
	c.Env, c.Stdout, c.Stderr = s.env(), io.Discard, io.Discard
	var text strings.Builder
	c.Stderr = &text
	timer := time.AfterFunc(testkit.Patience, func() { c.Process.Kill() })
	defer timer.Stop()
	if err := c.Run(); err != nil && c.ProcessState.ExitCode() != 1 { // 1: everything is ended, but not proved
		return "reap " + what + ": " + err.Error() + ": " + text.String()
	}
	if r := s.records(); len(r) > 0 {
		return "reap leaves " + strings.Join(r, " ")
	}
	return ""
}

// clean restores everything.
func (s *scene) clean(self string) error {
	s.kill()
	for _, d := range []string{"state", "tmp", "out/new", "out/moved", "work/linked", "work/ran"} {
		os.RemoveAll(filepath.Join(s.Dir, d))
	}
	return s.files(self)
}
