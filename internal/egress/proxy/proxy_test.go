package proxy

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zsbx/zsbx/internal/egress"
	"github.com/zsbx/zsbx/internal/egress/names"
	"github.com/zsbx/zsbx/internal/egress/relay"
	"github.com/zsbx/zsbx/internal/egress/rule"
)

// world is a front with what is behind it.
type world struct {
	*Front
	mu      sync.Mutex
	servers map[string]string
	dialed  []string
	said    []string
}

func newWorld(t testing.TB) *world {
	var all []rule.Rule
	for _, text := range []string{"a.example", "a.example:80", "b.example:80", "ssh.example:22", "inside.example", "gone.example", "192.0.2.0/24:7", "localhost:9"} {
		r, err := rule.Parse(text, rule.Marks{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	w := &world{servers: map[string]string{}}
	set := rule.NewSet(all, nil)
	sink := func(e egress.Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.said = append(w.said, string(e.Kind)+" "+e.Verdict.Line(e.Who))
	}
	resolver := names.New(names.Config{Rules: set, Lookup: lookup, Events: sink})
	w.Front = &Front{
		Names:    resolver,
		Relay:    relay.New(relay.Config{Rules: set, Dialer: w.dial, Addrs: resolver.Addrs, Events: sink}),
		Password: "secret",
	}
	return w
}

func lookup(_ context.Context, name string) ([]netip.Addr, time.Duration, error) {
	addr, ok := map[string]string{"a.example": "203.0.113.1", "b.example": "203.0.113.1", "ssh.example": "203.0.113.2", "inside.example": "10.0.0.1"}[name]
	if !ok {
		return nil, 0, names.ErrNotFound
	}
	return []netip.Addr{netip.MustParseAddr(addr)}, 0, nil
}

func (w *world) dial(ctx context.Context, address string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dialed = append(w.dialed, address)
	to := w.servers[address]
	if to == "" {
		return nil, errors.New("refused")
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", to)
}

// listen starts the front, and returns its address.
func (w *world) listen(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go w.Serve(t.Context(), l)
	return l.Addr().String()
}

// TestClient: net/http's client by the proxy: tunnels, absolute targets, and what it is told.
func TestClient(t *testing.T) {
	w := newWorld(t)
	handler := http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		fmt.Fprintf(out, "%s %s %s %q %v", q.Method, q.Host, body, q.Header.Get("Proxy-Authorization"), q.Close)
	})
	plain := httptest.NewServer(handler)
	secure := httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	w.servers["203.0.113.1:80"] = plain.Listener.Addr().String()
	w.servers["203.0.113.1:443"] = secure.Listener.Addr().String()
	proxy := &url.URL{Scheme: "http", Host: w.listen(t), User: url.UserPassword(User, "secret")}
	transport := secure.Client().Transport.(*http.Transport)
	transport.TLSClientConfig.InsecureSkipVerify = true
	transport.Proxy = http.ProxyURL(proxy)
	transport.DialContext = nil
	client := http.Client{Transport: transport}
	for _, c := range []struct{ url, want string }{
		{"http://a.example/", `200 POST a.example hello "" true`},
		{"http://b.example/", `200 POST b.example hello "" true`},
		{"https://a.example/", `200 POST a.example hello "" false`},
		{"http://evil.example/", "403 zsbx: refused: evil.example:80: not in [net] hosts; to allow: --allow-host evil.example:80\n"},
		{"http://a.example:81/", "403 zsbx: refused: a.example:81: the host is allowed on 80 and 443 only; to allow: --allow-host a.example:81\n"},
		{"https://evil.example/", "Forbidden"},
		{"https://inside.example/", "Forbidden"},
		{"https://gone.example/", "Bad Gateway"},
		{"https://127.0.0.1/", "Forbidden"},
	} {
		got := ""
		r, err := client.Post(c.url, "text/plain", strings.NewReader("hello"))
		if err != nil {
			got = err.Error()
		} else {
			body, _ := io.ReadAll(r.Body)
			got = fmt.Sprintf("%d %s", r.StatusCode, body)
		}
		if !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: %s", c.url, got)
		}
	}
	proxy.User = url.UserPassword(User, "wrong")
	if r, err := client.Get("http://a.example/"); err != nil || r.StatusCode != http.StatusProxyAuthRequired {
		t.Errorf("a wrong password: %v, %v", r, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if all := strings.Join(w.said, "\n"); !strings.Contains(all, "its address 10.0.0.1 is private") {
		t.Errorf("said: %s", all)
	}
}

// exchange sends some bytes and returns what comes until the end.
func (w *world) exchange(t *testing.T, text string) string {
	c, err := net.Dial("tcp", w.listen(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	io.WriteString(c, text)
	c.(*net.TCPConn).CloseWrite()
	all, _ := io.ReadAll(c)
	return string(all)
}

// hello has a server that says hello and sends back what comes.
func (w *world) hello(t *testing.T, address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	w.servers[address] = l.Addr().String()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				io.WriteString(c, "hello ")
				io.Copy(c, c)
				c.Close()
			}()
		}
	}()
}

var basic = "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("zsbx:secret")) + "\r\n"

// TestConnect: tunnels as old and impatient clients ask for them.
func TestConnect(t *testing.T) {
	w := newWorld(t)
	w.hello(t, "203.0.113.2:22")
	w.hello(t, "192.0.2.7:7")
	w.hello(t, "127.0.0.1:9")
	const ok = "HTTP/1.1 200 Connection established\r\n\r\nhello "
	for text, want := range map[string]string{
		"CONNECT ssh.example:22 HTTP/1.0\r\n" + basic + "\r\nearly":                     ok + "early",
		"CONNECT SSH.Example.:22 HTTP/1.1\r\nHost: ssh.example:22\r\n" + basic + "\r\n": ok,
		"CONNECT 192.0.2.7:7 HTTP/1.1\r\nHost: x\r\n" + basic + "\r\n":                  ok,
		"CONNECT localhost:9 HTTP/1.1\r\n" + basic + "\r\n":                             ok,
		"CONNECT [::ffff:127.0.0.1]:9 HTTP/1.1\r\n" + basic + "\r\n":                    ok,
		"CONNECT ssh.example:22 HTTP/1.0\r\n\r\n":                                       "407",
		"CONNECT ssh.example:22 HTTP/1.0\r\nProxy-Authorization: Basic eDp5\r\n\r\n":    "407",
		"CONNECT ssh.example:23 HTTP/1.0\r\n" + basic + "\r\n":                          "403",
		"CONNECT 10.0.0.1:22 HTTP/1.0\r\n" + basic + "\r\n":                             "403",
		"CONNECT ssh.example HTTP/1.0\r\n" + basic + "\r\n":                             "400",
		"CONNECT ssh.example:0 HTTP/1.0\r\n" + basic + "\r\n":                           "400",
		"CONNECT :22 HTTP/1.0\r\n" + basic + "\r\n":                                     "400",
		"CONNECT ssh.example:22 HTTP/1.1\r\n" + basic + "Content-Length: 3\r\n\r\nabc":  "400",
		"GET / HTTP/1.1\r\nHost: a.example\r\n" + basic + "\r\n":                        "400",
		"GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n" + basic + "\r\n":        "400",
		"\x04\x01":                         "400",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": "400",
	} {
		got := w.exchange(t, text)
		if !strings.HasPrefix(strings.TrimPrefix(got, "HTTP/1.1 "), strings.TrimPrefix(want, "HTTP/1.1 ")) || strings.HasPrefix(want, "HTTP") && got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// TestSOCKS: what is granted, and each other answer.
func TestSOCKS(t *testing.T) {
	w := newWorld(t)
	w.hello(t, "203.0.113.2:22")
	w.hello(t, "192.0.2.7:7")
	const login = "\x05\x02\x00\x02" + "\x01\x04zsbx\x06secret"
	const in = "\x05\x02\x01\x00"
	answer := func(code byte) string { return "\x05" + string(rune(code)) + "\x00\x01\x00\x00\x00\x00\x00\x00" }
	for text, want := range map[string]string{
		login + "\x05\x01\x00\x03\x0bssh.example\x00\x16early":                   in + answer(0) + "hello early",
		login + "\x05\x01\x00\x01\xc0\x00\x02\x07\x00\x07":                       in + answer(0) + "hello ",
		login + "\x05\x01\x00\x03\x0bssh.example\x00\x17":                        in + answer(2),
		login + "\x05\x01\x00\x03\x0cgone.example\x01\xbb":                       in + answer(4),
		login + "\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50":                       in + answer(2),
		login + "\x05\x01\x00\x04" + strings.Repeat("\x00", 15) + "\x01\x00\x50": in + answer(2),
		login + "\x05\x02\x00\x03\x0bssh.example\x00\x16":                        in + answer(7),
		login + "\x05\x01\x00\x05":                                               in + answer(8),
		login + "\x05\x01\x00\x03\x00\x00\x16":                                   in + answer(1),
		login + "\x05\x01\x00\x03\x0bssh.example\x00\x00":                        in + answer(1),
		login + "\x04\x01\x00":                                                   in + answer(1),
		"\x05\x01\x00":                                                           "\x05\xff",
		"\x05\x01\x02\x01\x04zsbx\x05wrong":                                      "\x05\x02\x01\x01",
		"\x05\x01\x02\x01\x04ZSBX\x06secret":                                     "\x05\x02\x01\x01",
	} {
		got := w.exchange(t, text)
		if got != want && !strings.HasPrefix(got, want+"\x00\x00") {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// wire is a client that sends some bytes and keeps what comes.
type wire struct {
	net.Conn
	in  *bytes.Reader
	out bytes.Buffer
}

func (c *wire) Read(b []byte) (int, error)       { return c.in.Read(b) }
func (c *wire) Write(b []byte) (int, error)      { return c.out.Write(b) }
func (c *wire) Close() error                     { return nil }
func (c *wire) SetDeadline(time.Time) error      { return nil }
func (c *wire) SetReadDeadline(time.Time) error  { return nil }
func (c *wire) SetWriteDeadline(time.Time) error { return nil }

// fuzz sends bytes to a front: without the password nothing is dialed, and nothing but what is allowed.
func fuzz(f *testing.F) {
	w := newWorld(f)
	allowed := map[string]bool{"203.0.113.1:443": true, "203.0.113.1:80": true, "203.0.113.2:22": true, "127.0.0.1:9": true, "[::1]:9": true}
	f.Fuzz(func(t *testing.T, text []byte) {
		c := &wire{in: bytes.NewReader(text)}
		w.serve(t.Context(), c)
		w.mu.Lock()
		defer w.mu.Unlock()
		dialed := w.dialed
		w.dialed = nil
		w.said = nil
		if len(dialed) == 0 {
			return
		}
		named := bytes.Contains(text, []byte("secret")) || bytes.Contains(text, []byte("enNieDpzZWNyZXQ="))
		for _, to := range dialed {
			a := netip.MustParseAddrPort(to)
			here := a.Addr().Unmap().IsLoopback() || a.Addr().Unmap().IsUnspecified()
			ok := allowed[to] || here && a.Port() == 9 || a.Port() == 7 && netip.MustParsePrefix("192.0.2.0/24").Contains(a.Addr())
			if !named || !ok {
				t.Fatalf("%q dials %s", text, to)
			}
		}
	})
}

func FuzzConnect(f *testing.F) {
	f.Add([]byte("CONNECT ssh.example:22 HTTP/1.0\r\n" + basic + "\r\nearly"))
	f.Add([]byte("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n" + basic + "\r\n"))
	f.Add([]byte("CONNECT [::1]:9 HTTP/1.1\r\nHost: x\r\n" + basic + "\r\n"))
	fuzz(f)
}

func FuzzSOCKS(f *testing.F) {
	const login = "\x05\x02\x00\x02" + "\x01\x04zsbx\x06secret"
	f.Add([]byte(login + "\x05\x01\x00\x03\x0bssh.example\x00\x16early"))
	f.Add([]byte(login + "\x05\x01\x00\x01\xc0\x00\x02\x07\x00\x07"))
	f.Add([]byte(login + "\x05\x01\x00\x04" + strings.Repeat("\x00", 15) + "\x01\x00\x09"))
	fuzz(f)
}

// TestMost: who comes when all places are taken is served once there is one.
func TestMost(t *testing.T) {
	w := newWorld(t)
	w.hello(t, "203.0.113.2:22")
	w.Most = 1
	to := w.listen(t)
	first, err := net.Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	io.WriteString(first, "CONN") // and no more
	time.Sleep(50 * time.Millisecond)
	second, err := net.Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	io.WriteString(second, "CONNECT ssh.example:22 HTTP/1.0\r\n"+basic+"\r\n")
	answer := make([]byte, 12)
	second.SetDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := io.ReadFull(second, answer); err == nil {
		t.Errorf("served beside another one: %q", answer)
	}
	first.Close()
	second.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.ReadFull(second, answer); err != nil || string(answer) != "HTTP/1.1 200" {
		t.Errorf("%q, %v", answer, err)
	}
}
