package hello_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/zsbx/zsbx/internal/egress/hello"
)

// hi returns the ClientHello of Go's own client, in one record.
func hi(t testing.TB, c *tls.Config) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		tls.Client(theirs, c).Handshake()
		theirs.Close()
	}()
	defer ours.Close()
	raw, _, err := hello.Read(ours)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// records puts a handshake message in records of a size.
func records(message []byte, size int) (out []byte) {
	for len(message) > 0 {
		n := min(size, len(message))
		out = append(out, 22, 3, 1)
		out = binary.BigEndian.AppendUint16(out, uint16(n))
		out = append(out, message[:n]...)
		message = message[n:]
	}
	return out
}

// message builds a ClientHello with extensions.
func message(extensions ...[]byte) []byte {
	body := append(make([]byte, 34), 0, 0, 2, 0x13, 1, 1, 0)
	all := bytes.Join(extensions, nil)
	body = binary.BigEndian.AppendUint16(body, uint16(len(all)))
	body = append(body, all...)
	return append([]byte{1, byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}, body...)
}

func extension(kind uint16, content []byte) []byte {
	out := binary.BigEndian.AppendUint16(nil, kind)
	out = binary.BigEndian.AppendUint16(out, uint16(len(content)))
	return append(out, content...)
}

// names is the extension with server names.
func names(all ...string) []byte {
	var list []byte
	for _, n := range all {
		list = append(list, 0)
		list = binary.BigEndian.AppendUint16(list, uint16(len(n)))
		list = append(list, n...)
	}
	return extension(0, append(binary.BigEndian.AppendUint16(nil, uint16(len(list))), list...))
}

// TestRead: a name over any records and segments, and nothing that comes after is read.
func TestRead(t *testing.T) {
	go1 := hi(t, &tls.Config{ServerName: "a.example"})
	for name, raw := range map[string][]byte{
		"Go":               go1,
		"one-byte records": records(go1[5:], 1),
		"7-byte records":   records(go1[5:], 7),
		"built":            records(message(names("a.example"), extension(0x0a0a, nil)), 100),
		"padded":           records(message(extension(21, make([]byte, 60000)), names("a.example")), 16384),
	} {
		r := bytes.NewReader(append(bytes.Clone(raw), "rest"...))
		got, h, err := hello.Read(iotest.OneByteReader(r))
		if err != nil || h.Name != "a.example" || h.ECH || !bytes.Equal(got, raw) || r.Len() != 4 {
			t.Errorf("%s: %+v, %v, %d bytes left", name, h, err, r.Len())
		}
		yes, known := hello.Begins(raw)
		if !yes || !known {
			t.Errorf("%s does not begin as TLS", name)
		}
	}
	_, h, err := hello.Read(bytes.NewReader(records(message(names("a.example"), extension(0xfe0d, []byte{0})), 100)))
	if err != nil || !h.ECH {
		t.Errorf("ECH: %+v, %v", h, err)
	}
	_, h, err = hello.Read(bytes.NewReader(hi(t, &tls.Config{InsecureSkipVerify: true})))
	if err != nil || h.Name != "" {
		t.Errorf("no name: %+v, %v", h, err)
	}
}

// TestFaults: what could be read in two ways, and what is no ClientHello.
func TestFaults(t *testing.T) {
	good := message(names("a.example"))
	for name, raw := range map[string][]byte{
		"two names":          records(message(names("a.example", "b.example")), 999),
		"two extensions":     records(message(names("a.example"), names("b.example")), 999),
		"empty name":         records(message(names("")), 999),
		"no name in list":    records(message(extension(0, []byte{0, 0})), 999),
		"other type of name": records(message(extension(0, []byte{0, 4, 1, 0, 1, 'a'})), 999),
		"bytes after list":   records(message(extension(0, []byte{0, 4, 0, 0, 1, 'a', 9})), 999),
		"cut extension":      records(message([]byte{0, 9, 0, 9, 1}), 999),
		"second message":     records(append(bytes.Clone(good), good...), 9999),
		"not a ClientHello":  records(append([]byte{2}, good[1:]...), 999),
		"HTTP":               []byte("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"),
		"alert":              {21, 3, 1, 0, 2, 1, 0},
		"empty record":       {22, 3, 1, 0, 0, 22, 3, 1, 0, 0},
		"long record":        {22, 3, 1, 0x40, 1},
		"another within":     append(records(good, 20)[:25], 23, 3, 3, 0, 1, 0),
		"too long":           records(message(extension(21, make([]byte, 65000)), names("a.example")), 100),
	} {
		_, h, err := hello.Read(bytes.NewReader(raw))
		var f hello.Fault
		if !errors.As(err, &f) {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
	raw := records(good, 999)
	for n := range len(raw) {
		_, _, err := hello.Read(bytes.NewReader(raw[:n]))
		want := io.ErrUnexpectedEOF
		if n == 0 {
			want = io.EOF
		}
		if err != want {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// TestBegins: what may still become TLS is not known to be none.
func TestBegins(t *testing.T) {
	for b, want := range map[string][2]bool{
		"": {}, "\x16": {}, "\x16\x03\x01\x00\x05": {}, "\x16\x03\x01\x00\x05\x01": {true, true},
		"\x16\x00": {false, true}, "SSH-": {false, true}, "\x16\x03\x01\x00\x05\x02": {false, true},
	} {
		yes, known := hello.Begins([]byte(b))
		if yes != want[0] || known != want[1] {
			t.Errorf("%q: %v, %v", b, yes, known)
		}
	}
}

// TestAfter: a second ClientHello is found wherever a server would read one.
func TestAfter(t *testing.T) {
	second := records(message(names("b.example"), extension(51, make([]byte, 70))), 999)
	long := records(message(names("b.example"), extension(51, make([]byte, 70)), extension(21, make([]byte, 20000))), 9999)
	data := func(n int) []byte { return append([]byte{23, 3, 3, byte(n >> 8), byte(n)}, make([]byte, n)...) }
	ccs := []byte{20, 3, 3, 0, 1, 1}
	for name, c := range map[string]struct {
		early bool
		sent  [][]byte
		want  string
	}{
		"at once":             {false, [][]byte{second}, "b.example"},
		"after a change":      {false, [][]byte{ccs, second}, "b.example"},
		"in one-byte records": {false, [][]byte{ccs, records(second[5:], 1)}, "b.example"},
		"after early data":    {true, [][]byte{data(9000), data(9000), ccs, second}, "b.example"},
		"after an alert":      {false, [][]byte{{21, 3, 3, 0, 2, 1, 90}, second}, "b.example"},
		"after an empty one":  {false, [][]byte{{22, 3, 3, 0, 0}, second}, "b.example"},
		"after a heartbeat":   {false, [][]byte{{24, 3, 3, 0, 3, 1, 0, 0}, second}, "b.example"},
		"long":                {false, [][]byte{long}, "b.example"},
		"after data":          {false, [][]byte{data(9), second}, ""},
		"after much data":     {true, [][]byte{data(18000), data(18000), data(18000), data(18000), second}, ""},
		"key exchange":        {false, [][]byte{records([]byte{16, 0, 0, 1, 9}, 9), ccs, second}, ""},
		"encrypted":           {false, [][]byte{ccs, records(append([]byte{1, 0xff}, make([]byte, 38)...), 99), second}, ""},
		"no TLS":              {false, [][]byte{[]byte("GET / HTTP/1.1\r\n"), second}, ""},
	} {
		first := message(names("a.example"))
		if c.early {
			first = message(names("a.example"), extension(42, nil))
		}
		_, h, err := hello.Read(bytes.NewReader(records(first, 999)))
		if err != nil {
			t.Fatal(err)
		}
		all := bytes.Join(c.sent, nil)
		r := bytes.NewReader(all)
		after := h.After()
		got := ""
		var passed []byte
		for over := false; !over && err == nil && got == ""; {
			var raw []byte
			var other *hello.Hello
			raw, other, over, err = after.Next(r)
			passed = append(passed, raw...)
			if other != nil {
				got = other.Name
			}
		}
		if got != c.want || err != nil || !bytes.HasPrefix(all, passed) || len(all)-len(passed) != r.Len() {
			t.Errorf("%s: %q, %v, %d bytes passed of %d, %d left", name, got, err, len(passed), len(all), r.Len())
		}
	}
}

// FuzzHello: nothing panics, and what is accepted is what crypto/tls reads, too.
func FuzzHello(f *testing.F) {
	f.Add(hi(f, &tls.Config{ServerName: "a.example"}))
	f.Add(records(message(names("a.example"), extension(0xfe0d, []byte{0})), 3))
	f.Add(records(message(names("a.example", "b.example")), 99))
	f.Fuzz(func(t *testing.T, data []byte) {
		raw, h, err := hello.Read(bytes.NewReader(data))
		if !bytes.HasPrefix(data, raw) || len(raw) > 64<<10 {
			t.Fatalf("%d bytes read of %d", len(raw), len(data))
		}
		if err != nil {
			return
		}
		rest := bytes.NewReader(data[len(raw):])
		after := h.After()
		for over := false; !over && err == nil; {
			_, _, over, err = after.Next(rest)
		}
		theirs, ok := reference(raw)
		same := strings.EqualFold(strings.TrimSuffix(theirs, "."), strings.TrimSuffix(h.Name, "."))
		if ok && !same {
			t.Fatalf("%q here, %q for crypto/tls", h.Name, theirs)
		}
	})
}

// reference returns the server name that Go's server reads.
func reference(raw []byte) (name string, ok bool) {
	stop := errors.New("stop")
	c := &tls.Config{GetConfigForClient: func(i *tls.ClientHelloInfo) (*tls.Config, error) {
		name = i.ServerName
		ok = true
		return nil, stop
	}}
	tls.Server(oneWay{nil, bytes.NewReader(raw)}, c).Handshake()
	return name, ok
}

// oneWay is a connection that can only be read.
type oneWay struct {
	net.Conn
	r io.Reader
}

func (o oneWay) Read(b []byte) (int, error)  { return o.r.Read(b) }
func (o oneWay) Write(b []byte) (int, error) { return len(b), nil }
