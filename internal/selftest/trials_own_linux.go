package selftest

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/enforce/broker"
	"github.com/zsbx/zsbx/internal/fork"
)

// tryOwnNet connects a socket of a session's own network to a server of this machine. A command
// without network gets such sockets. This process asks a keeper for it, as a broker does, and
// nothing but the network confines it. Where there can be no such network, a plan says so: see
// enforce.Caps.NoOwnNet.
func (s *linuxScene) tryOwnNet() error {
	const shell = "/bin/sh"
	_, err := os.Stat(shell)
	if s.caps.NoOwnNet() != "" || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	defer out.Close()
	net := &broker.OwnNet{}
	if err := net.Open(); err != nil {
		return err
	}
	defer net.Close()
	// The shell waits until the pipe is closed, and its keeper with it.
	c := &fork.Command{Path: shell, Args: []string{"sh", "-c", "read x"}, Files: []*os.File{in}, Keeper: &fork.Keeper{}}
	if !s.caps.Privileged {
		c.Namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWPID
	}
	net.Attach(c, false)
	proc, err := fork.Start(c)
	if err != nil {
		return err
	}
	defer proc.Close()
	for _, family := range []int32{unix.AF_INET, unix.AF_INET6} {
		s.tryOwn(net, family)
	}
	return nil
}

// tryOwn connects a socket of one family.
func (s *linuxScene) tryOwn(net *broker.OwnNet, family int32) {
	fd, errno := net.Socket(fork.SocketRequest{Family: family, Kind: unix.SOCK_STREAM})
	free, err := unix.Socket(int(family), unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if errno == unix.EAFNOSUPPORT && err != nil {
		return // no IPv6
	}
	defer unix.Close(free)
	answer := errno
	if errno == 0 {
		defer unix.Close(fd)
		answer = s.reach(fd, family)
	}
	got := s.reach(free, family)
	const detail = "connect(2) to a server of this machine: %s, without restrictions %s"
	p := Proof{
		Name:    enforce.GapNetwork,
		Promise: "no network but the session's own: " + familyName(family),
		Detail:  fmt.Sprintf(detail, answerText(answer), answerText(got)),
	}
	if answer != 0 && got == 0 {
		p.Held = true
		p.Means = "a network namespace"
	}
	s.proofs = append(s.proofs, p)
}

func familyName(family int32) string {
	if family == unix.AF_INET {
		return "IPv4"
	}
	return "IPv6"
}

// reach connects a socket to the scene's server.
func (s *linuxScene) reach(fd int, family int32) unix.Errno {
	four := [4]byte{127, 0, 0, 1}
	var to unix.Sockaddr = &unix.SockaddrInet4{Port: s.port, Addr: four}
	if family == unix.AF_INET6 {
		mapped := [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}
		to = &unix.SockaddrInet6{Port: s.port, Addr: mapped}
	}
	errno := unix.Errno(0)
	_ = errors.As(unix.Connect(fd, to), &errno) // harmless: connect(2) returns nothing else
	return errno
}
