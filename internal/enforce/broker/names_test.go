package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce/seccomp"
	"github.com/zsbx/zsbx/internal/host"
)

func TestResolvConf(t *testing.T) {
	for text, want := range map[string]string{
		"": "[]", "nameserver": "[]", "# nameserver 1.1.1.1\n;nameserver 1.1.1.1\nsearch nameserver 1.1.1.1": "[]",
		"nameserver 127.0.0.53\noptions edns0": "[127.0.0.53]", "nameserver\t2001:db8::1 x\nnameserver ::ffff:10.0.0.1": "[2001:db8::1 10.0.0.1]",
		"nameserver fe80::1%eth0\nnameserver x\nnameserver 1.2.3.4:53":                   "[]",
		"nameserver 1.1.1.1\nnameserver 1.1.1.2\nnameserver 1.1.1.3\nnameserver 1.1.1.4": "[1.1.1.1 1.1.1.2 1.1.1.3]",
	} {
		h := &host.Host{ReadFile: func(string) ([]byte, error) { return []byte(text), nil }}
		if got := fmt.Sprint(NameServers(h)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if NameServers(nil) != nil || NameServers(&host.Host{ReadFile: func(string) ([]byte, error) { return nil, errors.New("x") }}) != nil {
		t.Error("name servers of no machine")
	}
}

func TestMayAsk(t *testing.T) {
	m := &Policy{Names: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::1")}}
	address := func(family uint16, to string) []byte {
		a := netip.MustParseAddrPort(to)
		b := make([]byte, 4, 28)
		binary.NativeEndian.PutUint16(b, family)
		binary.BigEndian.PutUint16(b[2:], a.Port())
		if family == seccomp.AfInet {
			return append(append(b, a.Addr().AsSlice()...), make([]byte, 8)...)
		}
		raw := a.Addr().As16()
		return append(append(append(b, 0, 0, 0, 0), raw[:]...), 0, 0, 0, 0)
	}
	scoped := address(seccomp.AfInet6, "[2001:db8::1]:53")
	scoped[24] = 1
	for _, c := range []struct {
		b    []byte
		want bool
	}{
		{address(seccomp.AfInet, "10.0.0.1:53"), true}, {address(seccomp.AfInet6, "10.0.0.1:53"), true}, {address(seccomp.AfInet6, "[2001:db8::1]:53"), true},
		{address(seccomp.AfInet, "10.0.0.1:54"), false}, {address(seccomp.AfInet, "10.0.0.2:53"), false}, {address(seccomp.AfInet6, "[2001:db8::2]:53"), false},
		{address(seccomp.AfUnix, "[2001:db8::1]:53"), false}, {scoped, false}, {nil, false}, {address(seccomp.AfInet, "10.0.0.1:53")[:15], false},
		{address(seccomp.AfInet6, "[2001:db8::1]:53")[:24], false},
	} {
		if got := m.mayAsk(c.b); got != c.want {
			t.Errorf("%x: %v", c.b, got)
		}
	}
}
