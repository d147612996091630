package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/internal/seccomp"
	"github.com/zsbx/zsbx/policy"
)

// The descriptors that a process gets which goes on with a mediation.
const (
	keptListener = 3
	keptState    = 4
	keptKeeper   = 5 // if keptMediation.Keeper
)

// keptMediation is what it is told, as JSON: a Policy and the session's
// sockets so far.
type keptMediation struct {
	Unix       []keptPath
	Net        policy.NetMode
	ConnectTCP []uint16
	ListenTCP  []uint16
	Sockets    bool

	Capabilities uint64

	Peers   bool
	Signals seccomp.SignalMode
	Session session

	Files  []keptFile
	Names  []keptName
	Keeper bool // the keeper can be asked: see fork.Fetcher
}

type keptPath struct {
	Path string
	ID   policy.FileID
	Dir  bool
}

type keptFile struct {
	ID   policy.FileID
	Sock boundSocket
}

type keptName struct {
	Netns uint64
	Name  []byte
	Sock  boundSocket
}

// handOver ends serve, which leaves the queue alone, and starts the process
// that goes on. Where serve has not begun yet it never does.
func (m *mediator) handOver(c *exec.Cmd) error {
	m.mu.Lock()
	closed := m.closed
	m.kept = !closed
	m.mu.Unlock()
	if closed {
		return errServed
	}
	switch err := m.begin(); err {
	case nil:
	case errServed:
		m.close()
		<-m.ended
	case errNoQueue:
		return nil
	default:
		return err
	}
	if m.queue.fd <= 0 {
		return nil
	}
	defer unix.Close(m.queue.fd)
	if m.queue.empty() {
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	defer w.Close()
	fd, err := unix.FcntlInt(uintptr(m.queue.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		r.Close()
		return fmt.Errorf("copying the queue's descriptor: %w", err)
	}
	queue := os.NewFile(uintptr(fd), "queue of socket calls")
	c.ExtraFiles = []*os.File{queue, r}
	if line, err := m.process.Line(); err == nil && line != nil {
		defer line.Close()
		c.ExtraFiles = append(c.ExtraFiles, line)
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c.Dir = "/"
	err = c.Start()
	queue.Close()
	r.Close()
	if err != nil {
		return fmt.Errorf("starting %s to go on answering socket calls: %w", c.Path, err)
	}
	kept := m.keep()
	kept.Keeper = len(c.ExtraFiles) == keptKeeper-keptListener+1
	if err := json.NewEncoder(w).Encode(kept); err != nil {
		return fmt.Errorf("telling the process that goes on answering socket calls: %w", err)
	}
	return c.Process.Release()
}

func (m *mediator) keep() keptMediation {
	m.own.mu.Lock()
	defer m.own.mu.Unlock()
	k := keptMediation{Net: m.policy.Net, Sockets: m.policy.Sockets, Capabilities: m.policy.Capabilities, ConnectTCP: m.policy.ConnectTCP, ListenTCP: m.policy.ListenTCP,
		Peers: m.policy.Peers, Signals: m.policy.Signals, Session: m.theSession()}
	for i := range m.policy.Unix {
		p := &m.policy.Unix[i]
		k.Unix = append(k.Unix, keptPath{p.Path, p.ID, p.Mode.IsDir()})
	}
	for id, s := range m.own.byFile {
		k.Files = append(k.Files, keptFile{id, s})
	}
	for n, s := range m.own.byName {
		k.Names = append(k.Names, keptName{n.netns, []byte(n.name), s})
	}
	return k
}

func (k *keptMediation) mediator(listener int) *mediator {
	m := &mediator{}
	m.begins(&Policy{Net: k.Net, ConnectTCP: k.ConnectTCP, ListenTCP: k.ListenTCP, Sockets: k.Sockets, Capabilities: k.Capabilities,
		Peers: k.Peers, Signals: k.Signals})
	m.session = k.Session
	m.queue = newQueue(listener)
	if k.Keeper {
		unix.CloseOnExec(keptKeeper)
		m.keeper = fork.NewFetcher(keptKeeper)
	}
	for _, p := range k.Unix {
		mode := fs.ModeSocket
		if p.Dir {
			mode = fs.ModeDir
		}
		m.policy.Unix = append(m.policy.Unix, policy.Path{Path: p.Path, ID: p.ID, Mode: mode})
	}
	m.own.clean()
	for _, f := range k.Files {
		m.own.byFile[f.ID] = f.Sock
	}
	for _, n := range k.Names {
		m.own.byName[abstractName{n.Netns, string(n.Name)}] = n.Sock
	}
	return m
}

func serveKept() error {
	for _, fd := range []int{keptListener, keptState} {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
			return errors.New("this is for zsbx itself to call")
		}
	}
	state := os.NewFile(keptState, "state")
	b, err := io.ReadAll(state)
	state.Close()
	if err != nil {
		return fmt.Errorf("reading what to allow: %w", err)
	}
	var k keptMediation
	if err := json.Unmarshal(b, &k); err != nil {
		return fmt.Errorf("reading what to allow: %w", err)
	}
	return k.mediator(keptListener).run()
}
