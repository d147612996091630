//go:build linux

// Command compare tries acts that a sandboxed command should not be able to do:
// bare (the control, which must succeed), under zsbx and under bubblewrap in two
// usual configurations. It prints a Markdown table.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/creack/pty"
)

// world is what the acts are aimed at: all of it outside of the working
// directory.
type world struct {
	dir, home, work  string
	secret, outside  string // files in home
	path, abstract   string // sockets
	dgram            string
	tcp, udp         string // addresses on loopback
	victim, shm, fd9 string // a pid, a shared memory id, a file left open for appending
	posix, terminal  string // a file in /dev/shm, one in /dev/pts

	packets atomic.Int64 // that the daemons got
	process *os.Process  // the victim

	master, tty *os.File // of the terminal
}

// env hands the world to an act.
func (w *world) env() []string {
	var out []string
	for k, v := range map[string]string{
		"SECRET": w.secret, "OUTSIDE": w.outside, "PATHSOCK": w.path, "ABSTRACT": w.abstract, "DGRAM": w.dgram,
		"TCP": w.tcp, "UDP": w.udp, "VICTIM": w.victim, "SHM": w.shm, "POSIXSHM": w.posix, "TERMINAL": w.terminal, "OHOME": w.home, "WORK": w.work,
	} {
		out = append(out, k+"="+v)
	}
	return out
}

// wrapper is a way to run a command.
type wrapper struct {
	name string
	argv func(w *world, a act) []string
}

func main() {
	zsbx := flag.String("zsbx", "./zsbx", "the `binary`")
	name := flag.String("act", "", "do the `act` (for the inside)")
	flag.Parse()
	if *name != "" {
		os.Exit(perform(*name))
	}
	if err := compare(*zsbx); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// perform does one act: 0 when it succeeded.
func perform(name string) int {
	for _, a := range acts() {
		if a.name == name {
			if err := a.do(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			return 0
		}
	}
	return 2
}

func compare(zsbx string) error {
	zsbx, err := filepath.Abs(zsbx)
	if err != nil {
		return err
	}
	w, err := makeWorld()
	if err != nil {
		return err
	}
	defer w.end()
	self := filepath.Join(w.work, "act")
	if err := copyFile("/proc/self/exe", self); err != nil {
		return err
	}
	env := func() []string {
		var out []string
		for _, kv := range w.env() {
			out = append(out, "--env", kv)
		}
		return out
	}
	wrappers := []wrapper{
		{"bare", func(*world, act) []string { return nil }},
		{"zsbx run --rw .", func(w *world, a act) []string {
			argv := append([]string{zsbx, "run", "--rw", "."}, env()...)
			if a.network {
				argv = append(argv, "--no-net")
			}
			return append(argv, "--")
		}},
		{"bwrap, root read-only", func(w *world, a act) []string {
			argv := []string{"bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", w.work, w.work,
				"--unshare-pid", "--die-with-parent"}
			if a.network {
				argv = append(argv, "--unshare-net")
			}
			return argv
		}},
		{"bwrap, all unshared, home and run hidden", func(w *world, a act) []string {
			argv := []string{"bwrap", "--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc", "--symlink", "usr/bin", "/bin",
				"--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--dev", "/dev", "--proc", "/proc",
				"--tmpfs", "/tmp", "--tmpfs", "/run", "--bind", w.work, w.work, "--unshare-all", "--new-session", "--die-with-parent"}
			if !a.network {
				argv = append(argv, "--share-net")
			}
			return argv
		}},
	}
	fmt.Print("| act |")
	for _, wr := range wrappers {
		fmt.Printf(" %s |", wr.name)
	}
	fmt.Print("\n|---|", strings.Repeat("---|", len(wrappers)), "\n")
	for _, a := range acts() {
		fmt.Printf("| %s |", a.name)
		for _, wr := range wrappers {
			fmt.Printf(" %s |", w.try(wr, a, self))
		}
		fmt.Println()
	}
	return nil
}

// try says whether the act succeeded under the wrapper.
func (w *world) try(wr wrapper, a act, self string) string {
	argv := append(wr.argv(w, a), self, "-act", a.name)
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir, c.Env = w.work, append(os.Environ(), w.env()...)
	if a.name == inheritedFd {
		f, err := os.OpenFile(w.fd9, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err.Error()
		}
		defer f.Close()
		c.ExtraFiles = []*os.File{f, f, f, f, f, f, f}
	}
	done := make(chan error, 1)
	if err := c.Start(); err != nil {
		return err.Error()
	}
	go func() { done <- c.Wait() }()
	var err error
	select {
	case err = <-done:
	case <-time.After(20 * time.Second):
		c.Process.Kill()
		return "hung"
	}
	if err == nil && a.after != nil {
		err = a.after(w)
	}
	if err == nil {
		return "**done**"
	}
	if c.ProcessState.ExitCode() != 1 && a.after == nil {
		return fmt.Sprintf("refused (%v)", c.ProcessState)
	}
	return "refused"
}

func makeWorld() (*world, error) {
	dir, err := os.MkdirTemp("/var/tmp", "zsbx-compare-")
	if err != nil {
		return nil, err
	}
	w := &world{dir: dir, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work")}
	for _, d := range []string{w.home, w.work, filepath.Join(w.work, "repo")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return nil, err
		}
	}
	w.secret, w.outside, w.fd9 = filepath.Join(w.home, "secret"), filepath.Join(w.home, "outside"), filepath.Join(w.home, "log")
	for _, f := range []string{w.secret, w.outside, w.fd9} {
		if err := os.WriteFile(f, []byte("text\n"), 0o644); err != nil {
			return nil, err
		}
	}
	if out, err := exec.Command("git", "init", "-q", filepath.Join(w.work, "repo")).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("git: %v: %s", err, out)
	}
	if err := os.MkdirAll(filepath.Join(w.work, "repo", ".git", "hooks"), 0o755); err != nil {
		return nil, err
	}
	victim := exec.Command("sleep", "600")
	if err := victim.Start(); err != nil {
		return nil, err
	}
	w.process, w.victim = victim.Process, strconv.Itoa(victim.Process.Pid)
	id, _, errno := syscall.Syscall(syscall.SYS_SHMGET, 0, 4096, 0o600|0o1000) // IPC_PRIVATE, IPC_CREAT
	if errno != 0 {
		return nil, fmt.Errorf("shmget: %w", errno)
	}
	w.shm = strconv.Itoa(int(id))
	w.posix = "/dev/shm/" + filepath.Base(dir)
	if err := os.WriteFile(w.posix, nil, 0o600); err != nil {
		return nil, err
	}
	if w.master, w.tty, err = pty.Open(); err != nil {
		return nil, err
	}
	w.terminal = w.tty.Name()
	return w, w.listen()
}

// end takes the world away again.
func (w *world) end() {
	w.process.Kill()
	w.process.Wait()
	if id, err := strconv.Atoi(w.shm); err == nil {
		syscall.Syscall(syscall.SYS_SHMCTL, uintptr(id), 0, 0) // IPC_RMID
	}
	os.Remove(w.posix)
	os.RemoveAll(w.dir)
}

// listen starts the daemons outside.
func (w *world) listen() error {
	w.path, w.dgram = filepath.Join(w.home, "daemon"), filepath.Join(w.home, "log-daemon")
	w.abstract = "@zsbx-compare-" + strconv.Itoa(os.Getpid())
	for network, addr := range map[string]*string{"unix": &w.path, "unix ": &w.abstract, "tcp": &w.tcp} {
		at := *addr
		if network == "tcp" {
			at = "127.0.0.1:0"
		}
		l, err := net.Listen(strings.TrimSpace(network), at)
		if err != nil {
			return err
		}
		*addr = l.Addr().String()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Write([]byte("hello"))
				c.Close()
			}
		}()
	}
	d, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: w.dgram, Net: "unixgram"})
	if err != nil {
		return err
	}
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w.udp = u.LocalAddr().String()
	for _, c := range []net.PacketConn{d, u} {
		go func() {
			buf := make([]byte, 16)
			for {
				if _, _, err := c.ReadFrom(buf); err != nil {
					return
				}
				w.packets.Add(1)
			}
		}()
	}
	return nil
}

// packetCame says whether a daemon got a packet since it was last asked.
func packetCame(w *world) error {
	time.Sleep(50 * time.Millisecond)
	if w.packets.Swap(0) == 0 {
		return errors.New("it did not arrive")
	}
	return nil
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o755)
}
