package proxy

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"

	"github.com/zsbx/zsbx/internal/egress/rule"
)

// Numbers of SOCKS5 (RFC 1928, RFC 1929).
const (
	socksVersion  = 5
	withPassword  = 2
	noMethod      = 0xff
	connect       = 1
	isIPv4        = 1
	isName        = 3
	isIPv6        = 4
	granted       = 0
	failed        = 1
	notAllowed    = 2
	unreachable   = 4
	noSuchCommand = 7
	noSuchAddress = 8
)

// socks speaks SOCKS5 with a client, whose first byte is read.
func (f *Front) socks(ctx context.Context, c net.Conn) {
	if !f.greet(c) {
		return
	}
	host, port, code := request(c)
	if code != granted {
		reply(c, code)
		return
	}
	up, t, err := f.open(ctx, c, host, port)
	if err != nil {
		why, _ := reasonOf(err)
		reply(c, socksCode(why))
		return
	}
	if reply(c, granted) != nil {
		up.Close()
		return
	}
	f.pass(c, t, up)
}

// greet agrees on a method, and asks for the password.
func (f *Front) greet(c net.Conn) bool {
	methods, err := short(c)
	if err != nil {
		return false
	}
	if bytes.IndexByte(methods, withPassword) < 0 {
		c.Write([]byte{socksVersion, noMethod})
		return false
	}
	if _, err := c.Write([]byte{socksVersion, withPassword}); err != nil {
		return false
	}
	return f.login(c)
}

// login reads a name and a password.
func (f *Front) login(c net.Conn) bool {
	version := make([]byte, 1)
	if _, err := io.ReadFull(c, version); err != nil || version[0] != 1 {
		return false
	}
	user, err := short(c)
	if err != nil {
		return false
	}
	password, err := short(c)
	if err != nil {
		return false
	}
	if string(user) != User || !same(string(password), f.Password) {
		c.Write([]byte{1, failed})
		return false
	}
	_, err = c.Write([]byte{1, granted})
	return err == nil
}

// short reads what has its length in one byte before it.
func short(r io.Reader) ([]byte, error) {
	length := make([]byte, 1)
	if _, err := io.ReadFull(r, length); err != nil {
		return nil, err
	}
	text := make([]byte, length[0])
	_, err := io.ReadFull(r, text)
	return text, err
}

// request reads where to a client wants to, or why that can't be.
func request(r io.Reader) (host string, port uint16, code byte) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil || head[0] != socksVersion || head[2] != 0 {
		return "", 0, failed
	}
	if head[1] != connect {
		return "", 0, noSuchCommand
	}
	var addr []byte
	var err error
	switch head[3] {
	case isIPv4:
		addr = make([]byte, 4)
		_, err = io.ReadFull(r, addr)
	case isIPv6:
		addr = make([]byte, 16)
		_, err = io.ReadFull(r, addr)
	case isName:
		addr, err = short(r)
		host = string(addr)
	default:
		return "", 0, noSuchAddress
	}
	number := make([]byte, 2)
	if err == nil {
		_, err = io.ReadFull(r, number)
	}
	if err != nil {
		return "", 0, failed
	}
	if head[3] != isName {
		a, _ := netip.AddrFromSlice(addr)
		host = a.String()
	}
	port = binary.BigEndian.Uint16(number)
	if host == "" || port == 0 {
		return "", 0, failed
	}
	return host, port, granted
}

// socksCode is how a refusal is answered.
func socksCode(why rule.Reason) byte {
	switch why {
	case rule.Upstream:
		return unreachable
	case rule.Limit:
		return failed
	}
	return notAllowed
}

// reply answers a request.
func reply(c net.Conn, code byte) error {
	_, err := c.Write([]byte{socksVersion, code, 0, isIPv4, 0, 0, 0, 0, 0, 0})
	return err
}
