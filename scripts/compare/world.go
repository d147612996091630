//go:build linux

package main

import (
	"errors"
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

// makeRepo makes a repository in the writable tree. What protects its hooks is
// not there for the other acts.
func (w *world) makeRepo() (dir string, err error) {
	dir = filepath.Join(w.work, "repo")
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("git: %v: %s", err, out)
	}
	return dir, os.MkdirAll(filepath.Join(dir, ".git", "hooks"), 0o755)
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

func makeWorld() (*world, error) {
	dir, err := os.MkdirTemp("/var/tmp", "zsbx-compare-")
	if err != nil {
		return nil, err
	}
	w := &world{dir: dir, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work")}
	for _, d := range []string{w.home, w.work} {
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

// packetCame reports whether a daemon got a packet since it was last asked.
func packetCame(w *world) error {
	time.Sleep(50 * time.Millisecond)
	if w.packets.Swap(0) == 0 {
		return errors.New("it did not arrive")
	}
	return nil
}
