package internet

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// servers are all servers of one internet.
type servers struct {
	out    *os.File // the log
	issuer *issuer
}

// log writes a line to the log. Lines of several servers do not mix: each is one write(2).
func (s *servers) log(format string, args ...any) {
	fmt.Fprintf(s.out, format+"\n", args...)
}

// serve starts all servers. They end with the process.
func (s *servers) serve() error {
	for _, addr := range listeners {
		c, err := net.ListenPacket("udp", net.JoinHostPort(addr, "53"))
		if err != nil {
			return err
		}
		go s.serveDNS(c)
		for _, port := range []string{"443", "5353", "9999"} {
			c, err := net.ListenPacket("udp", net.JoinHostPort(addr, port))
			if err != nil {
				return err
			}
			go s.sink(c)
		}
	}
	for port, handle := range map[int]func(net.Conn){
		7: s.echo, 22: s.banner, 53: s.serveDNSTCP, 5432: s.echo, 9001: s.slow,
	} {
		if err := s.accept(port, handle); err != nil {
			return err
		}
	}
	if err := s.hole(); err != nil {
		return err
	}
	return s.web()
}

// accept serves a port of all addresses.
func (s *servers) accept(port int, handle func(net.Conn)) error {
	l, err := s.listen(port)
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				handle(c)
			}()
		}
	}()
	return nil
}

// listen listens on a port of all addresses, and logs what arrives.
func (s *servers) listen(port int) (net.Listener, error) {
	lc := net.ListenConfig{}
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(ctx, "tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return nil, err
	}
	return &listener{l, s, port}, nil
}

// listener logs what arrives on its connections.
type listener struct {
	net.Listener
	s    *servers
	port int
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.s.log("tcp %d at %s", l.port, host(c.LocalAddr()))
	return &conn{Conn: c, l: l}, nil
}

// conn logs the first bytes of a connection.
type conn struct {
	net.Conn
	l      *listener
	logged int
}

// most is how many bytes of a connection are logged. A ClientHello is less.
const most = 4096

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.logged < most {
		c.l.s.log("raw %d at %s %s", c.l.port, host(c.LocalAddr()), printable(b[:min(n, most-c.logged)]))
		c.logged += n
	}
	return n, err
}

// printable returns the text in some bytes on one line, with names of a ClientHello in it.
func printable(b []byte) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return '|'
		case r < ' ' || r > '~':
			return -1
		}
		return r
	}, string(b))
}

// CloseWrite ends what the server sends.
func (c *conn) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

// host returns an address without its port.
func host(a net.Addr) string {
	h, _, _ := net.SplitHostPort(a.String())
	return h
}

// sink logs datagrams.
func (s *servers) sink(c net.PacketConn) {
	at, port, _ := net.SplitHostPort(c.LocalAddr().String())
	for b := make([]byte, 2048); ; {
		n, _, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		s.log("udp %s at %s %.60q", port, at, b[:n])
	}
}

// echo sends back what arrives.
func (s *servers) echo(c net.Conn) { _, _ = io.Copy(c, c) }

// banner speaks first, as a server of SSH does.
func (s *servers) banner(c net.Conn) {
	fmt.Fprint(c, "SSH-2.0-Testbed\r\n")
	_, _ = c.Read(make([]byte, 256))
}

// slow reads 64 KiB at a time, with pauses.
func (s *servers) slow(c net.Conn) {
	time.Sleep(300 * time.Millisecond)
	total := 0
	end := "clean"
	for b := make([]byte, 64<<10); ; time.Sleep(2 * time.Millisecond) {
		n, err := c.Read(b)
		total += n
		if err == io.EOF {
			break
		}
		if err != nil {
			end = "reset"
			break
		}
	}
	s.log("slow %d %s", total, end)
}
