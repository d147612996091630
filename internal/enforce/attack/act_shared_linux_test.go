package attack_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// sharedActs use a network by name with sockets of the machine's network.
func sharedActs() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"shared-echo":   func(a []string) error { return sharedEcho(a[0], num(a[1])) },
		"shared-ask":    func(a []string) error { return sharedAsk(a[0]) },
		"shared-udp":    func(a []string) error { return sharedUDP(num(a[0])) },
		"shared-flip":   func(a []string) error { return sharedFlip(num(a[0]), num(a[1])) },
		"shared-swap":   func(a []string) error { return sharedSwap(a[0], num(a[1])) },
		"shared-option": func(a []string) error { return sharedOption(num(a[0]), num(a[1]), num(a[2])) },
		"shared-again":  func(a []string) error { return sharedAgain(num(a[0]), num(a[1])) },
		"shared-short":  func(a []string) error { return sharedShort(num(a[0])) },
		"shared-among":  func(a []string) error { return sharedAmong(a[0], a[1], num(a[2]), num(a[3])) },
		"shared-serve":  func(a []string) error { return sharedServe(a[0], a[1], num(a[2])) },
		"shared-given":  func(a []string) error { return sharedGiven(a[0], num(a[1])) },
	}
}

// sharedEcho connects to an echo server.
func sharedEcho(how string, port int) error {
	to := localhost(how, port)
	c, err := unix.Socket(familyOf(to), unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(c)
	if err := unix.Connect(c, to); err != nil {
		return err
	}
	return echoed(c, "a word")
}

// echoed sends a word and expects it back.
func echoed(c int, word string) error {
	if _, err := unix.Write(c, []byte(word)); err != nil {
		return err
	}
	var got []byte
	for len(got) < len(word) {
		b := make([]byte, len(word))
		n, err := unix.Read(c, b)
		if err != nil {
			return err
		}
		if n == 0 {
			return errNotServed
		}
		got = append(got, b[:n]...)
	}
	if string(got) != word {
		return errNotServed
	}
	return nil
}

// sharedName is a name in the tests' hosts(5), whose address is loop4.
const sharedName = "shared.example"

// sharedAsk asks any name server for a name.
func sharedAsk(how string) error {
	at := map[string]unix.Sockaddr{
		"udp":        &unix.SockaddrInet4{Port: 53, Addr: [4]byte{8, 8, 8, 8}},
		"udp ::":     &unix.SockaddrInet6{Port: 53, Addr: [16]byte{0x20, 1, 0xd, 0xb8, 15: 1}},
		"udp mapped": &unix.SockaddrInet6{Port: 53, Addr: mapped},
		"tcp":        &unix.SockaddrInet4{Port: 53, Addr: [4]byte{8, 8, 8, 8}},
		"tcp local":  &unix.SockaddrInet4{Port: 53, Addr: [4]byte{127, 0, 0, 53}},
	}[how]
	kind := unix.SOCK_DGRAM
	if how[:3] == "tcp" {
		kind = unix.SOCK_STREAM
	}
	c, err := unix.Socket(familyOf(at), kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	m := dnsmessage.Message{
		Header: dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{
			{Name: dnsmessage.MustNewName(sharedName + "."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
		},
	}
	question, err := m.Pack()
	if err != nil {
		return err
	}
	if kind == unix.SOCK_STREAM {
		question = append([]byte{0, byte(len(question))}, question...)
	}
	answer := make([]byte, 512)
	err = then(
		func() error { return unix.Connect(c, at) },
		func() error { _, err := unix.Write(c, question); return err })
	if err != nil {
		return err
	}
	for range 2 { // by TCP the length may come first
		n, err := unix.Read(c, answer)
		if err != nil || bytes.HasSuffix(answer[:n], []byte{0, 4, 127, 0, 0, 1}) {
			return err
		}
	}
	return errNotServed
}

// sharedUDP connects a UDP socket, as QUIC does.
func sharedUDP(port int) error {
	c, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Connect(c, localhost("127.0.0.1", port))
}

// sharedFlip connects while another thread changes the port in the address.
func sharedFlip(allowed, outside int) error {
	runtime.GOMAXPROCS(4)
	to := &unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: loop4}
	at := (*[2]byte)(unsafe.Pointer(&to.Port))
	var done sync.WaitGroup
	stop := make(chan struct{})
	done.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				binary.BigEndian.PutUint16(at[:], uint16([]int{allowed, outside}[i%2]))
			}
		}
	})
	reached := 0
	for range flips {
		c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		err = raw(unix.SYS_CONNECT, uintptr(c), uintptr(unsafe.Pointer(to)), unix.SizeofSockaddrInet4)
		if err == nil {
			reached++
		}
		unix.SetsockoptLinger(c, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		unix.Close(c)
	}
	close(stop)
	done.Wait()
	if reached == 0 {
		return errNotServed
	}
	return nil
}

// sharedSwap connects while another thread puts a socket that a program outside has passed, and one for
// names, in the place of an own TCP socket.
func sharedSwap(path string, port int) error {
	runtime.GOMAXPROCS(2)
	theirs, err := given(path)
	if err != nil {
		return err
	}
	own, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	names, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	at, err := unix.Dup(own)
	if err != nil {
		return err
	}
	race(func(i int) { _ = unix.Dup3([]int{own, theirs, names}[i%3], at, unix.O_CLOEXEC) },
		func() { _ = unix.Connect(at, localhost("127.0.0.1", port)) })
	return nil
}

// sharedOption sets an option that could lead a connection elsewhere.
func sharedOption(family, level, option int) error {
	c, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	value := []byte{1, 0, 0, 0}
	switch {
	case level == unix.SOL_SOCKET && option == unix.SO_BINDTODEVICE:
		value = []byte("lo\x00")
	case level != unix.SOL_SOCKET:
		value = nil // what every kernel takes
	}
	return raw(unix.SYS_SETSOCKOPT, uintptr(c), uintptr(level), uintptr(option),
		uintptr(unsafe.Pointer(unsafe.SliceData(value))), uintptr(len(value)))
}

// sharedAgain ends a connection with AF_UNSPEC, and connects the socket to another port.
func sharedAgain(allowed, outside int) error {
	c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	unspecified := make([]byte, 16)
	err = then(
		func() error { return unix.Connect(c, localhost("127.0.0.1", allowed)) },
		func() error { return echoed(c, "first") },
		func() error {
			return raw(unix.SYS_CONNECT, uintptr(c), uintptr(unsafe.Pointer(&unspecified[0])), uintptr(len(unspecified)))
		},
		func() error { return unix.Connect(c, localhost("127.0.0.1", allowed)) },
		func() error { return echoed(c, "again") },
		func() error {
			return raw(unix.SYS_CONNECT, uintptr(c), uintptr(unsafe.Pointer(&unspecified[0])), uintptr(len(unspecified)))
		})
	if err != nil {
		return fmt.Errorf("before: %v", err)
	}
	return unix.Connect(c, localhost("127.0.0.1", outside))
}

// sharedShort connects to an IPv6 address without its last field, which the kernel takes.
func sharedShort(port int) error {
	c, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	to := unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: uint16(port>>8 | port<<8), Addr: loop6}
	return raw(unix.SYS_CONNECT, uintptr(c), uintptr(unsafe.Pointer(&to)), 24)
}

// sharedAmong tells the port to which a connection leads, and then connects many times.
func sharedAmong(mine, yours string, port, times int) error {
	c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(c, localhost("127.0.0.1", port)); err != nil {
		return err
	}
	at, err := unix.Getpeername(c)
	if err != nil {
		return err
	}
	text := fmt.Sprint(at.(*unix.SockaddrInet4).Port)
	err = then(
		func() error { return os.WriteFile(mine+".ports", []byte(text), 0o666) },
		func() error { return turn(mine, yours) },
		func() error { return echoed(c, "first") })
	if err != nil {
		return err
	}
	for i := range times {
		c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|i%2*unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return err
		}
		if err := unix.Connect(c, localhost("127.0.0.1", port)); err != nil && err != unix.EINPROGRESS {
			return err
		}
		if err := unix.SetNonblock(c, false); err != nil {
			return err
		}
		if err := echoed(c, fmt.Sprint("word ", i)); err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
		unix.Close(c)
	}
	return nil
}

// sharedServe listens on a port until the test has connected.
func sharedServe(mine, yours string, port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return then(
		func() error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) },
		func() error { return unix.Bind(fd, localhost("127.0.0.1", port)) },
		func() error { return unix.Listen(fd, 8) },
		func() error { return turn(mine, yours) })
}

// sharedGiven connects a socket that a program outside has passed.
func sharedGiven(path string, port int) error {
	fd, err := given(path)
	if err != nil {
		return err
	}
	return unix.Connect(fd, localhost("127.0.0.1", port))
}
