package relay

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zsbx/zsbx/internal/egress/hello"
	"github.com/zsbx/zsbx/internal/egress/rule"
)

// certificate is good for any name, for clients that don't look.
func certificate(t testing.TB) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestTLS: the name in the handshake decides, whatever the address.
func TestTLS(t *testing.T) {
	w := newWorld(t, "a.example, b.example, raw.example:5432", nil)
	// The client does not begin with this curve: the server asks for a second ClientHello.
	config := &tls.Config{Certificates: []tls.Certificate{certificate(t)}, CurvePreferences: []tls.CurveID{tls.CurveP384}}
	for _, at := range []string{"203.0.113.1:443", "203.0.113.1:5432"} {
		w.serve(at, func(c *net.TCPConn) {
			s := tls.Server(c, config)
			io.Copy(s, s)
			s.Close()
		})
	}
	for _, c := range []struct {
		names, sni string
		port       uint16
		refused    string
	}{
		{"a.example", "a.example", 443, ""},
		{"a.example", "A.Example.", 443, ""},
		{"a.example b.example", "b.example", 443, ""},
		{"a.example", "b.example", 443, `refused sni a.example:443 (test, pid 1): the TLS handshake asks for "b.example"`},
		{"a.example", "evil.example", 443, `refused sni a.example:443 (test, pid 1): the TLS handshake asks for "evil.example"`},
		{"a.example", "", 443, "refused no-sni a.example:443"},
		{"raw.example", "raw.example", 5432, ""},
		{"raw.example", "evil.example", 5432, `asks for "evil.example"`},
	} {
		w.forget()
		client := w.connect(target(c.names, "203.0.113.1", c.port))
		s := tls.Client(client, &tls.Config{ServerName: c.sni, InsecureSkipVerify: true})
		_, err := s.Write([]byte("hello"))
		if c.refused != "" {
			if err == nil || !strings.Contains(w.said("refused"), c.refused) {
				t.Errorf("%s: %v, %s", c.sni, err, w.said(""))
			}
			continue
		}
		got := make([]byte, 5)
		if _, err2 := io.ReadFull(s, got); err != nil || err2 != nil || w.said("refused") != "" {
			t.Errorf("%s: %v, %v, %s", c.sni, err, err2, w.said(""))
		}
		client.Close()
	}
	w.forget()
	old := &tls.Config{ServerName: "a.example", InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, ClientSessionCache: tls.NewLRUClientSessionCache(1)}
	for _, resumed := range []bool{false, true} {
		s := tls.Client(w.connect(target("a.example", "203.0.113.1", 443)), old)
		_, err := s.Write([]byte("hello"))
		if _, err2 := io.ReadFull(s, make([]byte, 5)); err != nil || err2 != nil || s.ConnectionState().DidResume != resumed {
			t.Errorf("TLS 1.2, resumed %v: %v, %v, %s", resumed, err, err2, w.said(""))
		}
		s.Close()
	}
	client := w.connect(target("a.example b.example", "203.0.113.1", 443))
	client.Write(greeting(t, "a.example"))
	client.Write([]byte{20, 3, 3, 0, 1, 1})
	client.Write(greeting(t, "b.example"))
	if _, err := io.ReadAll(client); err == nil || !strings.Contains(w.said("refused"), `a second TLS handshake asks for "b.example"`) {
		t.Errorf("another name in a second ClientHello: %v, %s", err, w.said(""))
	}
	client = w.connect(target("a.example", "203.0.113.1", 443))
	io.WriteString(client, "SSH-2.0-x\r\n")
	_, err := io.ReadAll(client)
	if err == nil || !strings.Contains(w.said("not-tls"), "--allow-host a.example/tcp") {
		t.Errorf("ssh: %v, %s", err, w.said(""))
	}
}

// greeting returns the ClientHello for a name.
func greeting(t testing.TB, name string) []byte {
	ours, theirs := net.Pipe()
	defer ours.Close()
	go tls.Client(theirs, &tls.Config{ServerName: name}).Handshake()
	raw, _, err := hello.Read(ours)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestHTTP: each request of a connection is checked, and one that is refused does not arrive.
func TestHTTP(t *testing.T) {
	w := newWorld(t, "a.example:80, raw.example:8080", nil)
	seen := make(chan string, 100)
	server := func(c *net.TCPConn) {
		in := bufio.NewReader(c)
		for {
			q, err := http.ReadRequest(in)
			if err != nil {
				c.Close()
				return
			}
			body, _ := io.ReadAll(q.Body)
			seen <- q.Host + string(body)
			io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
		}
	}
	w.serve("203.0.113.1:80", server)
	w.serve("203.0.113.1:8080", server)
	const good = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"
	for _, c := range []struct{ second, want string }{
		{good, ""},
		{"POST / HTTP/1.1\r\nHost: A.EXAMPLE:80\r\nContent-Length: 3\r\n\r\nabc", ""},
		{"GET / HTTP/1.1\r\nHost: b.example\r\n\r\n", `http-host a.example:80 (test, pid 1): the HTTP request asks for "b.example"`},
		{"GET / HTTP/1.1\r\nHost: a.example:8080\r\n\r\n", `asks for "a.example:8080"`},
		{"GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n", "http a.example:80"},
		{"CONNECT b.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n", "tunnel"},
		{"GET / HTTP/1.1\r\nHost: \x9b[2J\r\n\r\n", `asks for "\x9b[2J"`},
	} {
		w.forget()
		client := w.connect(target("a.example", "203.0.113.1", 80))
		io.WriteString(client, good+c.second)
		client.CloseWrite()
		_, err := io.ReadAll(client)
		first := <-seen
		if c.want == "" && (err != nil || first != "a.example" || w.said("refused") != "" || len(<-seen) < 9) {
			t.Errorf("%q: %v, %s", c.second, err, w.said(""))
		}
		if c.want != "" && !strings.Contains(w.said("refused"), c.want) {
			t.Errorf("%q: %v, %s", c.second, err, w.said(""))
		}
	}
	client := w.connect(target("raw.example", "203.0.113.1", 8080))
	io.WriteString(client, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
	io.ReadAll(client)
	if len(seen) > 0 || w.said("evil.example") == "" {
		t.Errorf("a refused request has arrived: %s", w.said(""))
	}
}

// TestDenied: what "*" allows is looked at if a name is denied. A server may still be the first to speak.
func TestDenied(t *testing.T) {
	every := []rule.Rule{{Form: rule.All, Port: 443, Kind: rule.TCP}}
	evil := []rule.Rule{{Name: "evil.example"}}
	const request = "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"
	for _, c := range []struct {
		denials []rule.Rule
		text    string
		refused bool
	}{
		{nil, string(greeting(t, "evil.example")), false},
		{nil, request, false},
		{evil, string(greeting(t, "evil.example")), true},
		{evil, string(greeting(t, "other.example")), false},
		{evil, request, true},
		{evil, "GET / HTTP/1.1\r\nHost: other.example\r\n\r\n" + request, true},
		{evil, "SSH-2.0-x\r\n", false},
		{evil, "", false},
	} {
		w := newWorld(t, "a.example", func(r *Config) { r.Rules = rule.NewSet(every, c.denials) })
		var got bytes.Buffer
		ended := make(chan error)
		w.serve("203.0.113.1:443", func(s *net.TCPConn) {
			io.WriteString(s, "hello ")
			_, err := io.Copy(&got, s)
			s.Close()
			ended <- err
		})
		client := w.connect(target("a.example", "203.0.113.1", 443))
		if _, err := io.ReadFull(client, make([]byte, 6)); err != nil {
			t.Fatalf("%.40q: nobody speaks: %v, %s", c.text, err, w.said(""))
		}
		io.WriteString(client, c.text)
		client.CloseWrite()
		io.ReadAll(client)
		<-ended
		arrived := strings.Contains(got.String(), "evil.example")
		said := strings.Contains(w.said("refused denied evil.example:443"), "deny_hosts")
		if said != c.refused || c.refused && arrived || !c.refused && got.Len() != len(c.text) {
			t.Errorf("%.40q: %d bytes have arrived, %s", c.text, got.Len(), w.said(""))
		}
	}
}

// TestRaw: the server may be the first to speak, and each side may end before the other.
func TestRaw(t *testing.T) {
	w := newWorld(t, "ssh.example:22, 203.0.113.0/24:9, *:1", nil)
	for _, at := range []string{"203.0.113.1:22", "203.0.113.1:9", "203.0.113.1:1"} {
		w.serve(at, func(c *net.TCPConn) {
			io.WriteString(c, "hello ")
			all, _ := io.ReadAll(c)
			c.Write(bytes.ToUpper(all))
			c.Close()
		})
	}
	for _, at := range []Target{target("ssh.example", "203.0.113.1", 22), target("", "203.0.113.1", 9), target("any.example", "203.0.113.1", 1)} {
		for _, text := range []string{"", "x", "GE", strings.Repeat("x", 1000000)} {
			client := w.connect(at)
			greeting := make([]byte, 6)
			io.ReadFull(client, greeting)
			io.WriteString(client, text)
			client.CloseWrite()
			all, err := io.ReadAll(client)
			if string(greeting) != "hello " || string(all) != strings.ToUpper(text) || err != nil {
				t.Errorf("%s: %q, %d bytes, %v, %s", at.Ask.Names, greeting, len(all), err, w.said(""))
			}
		}
	}
	eventually(t, "sums", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.sums["ssh.example"] == sum{4, 1000003, 1000027}
	})
	client := w.connect(target("", "203.0.113.1", 22))
	if _, err := io.ReadAll(client); err == nil || !strings.Contains(w.said("refused"), "the host is allowed on 9 only") {
		t.Errorf("an address: %v, %s", err, w.said("refused"))
	}
}

// TestDial: if the address that was asked does not answer, or fails, the others of the name are tried.
func TestDial(t *testing.T) {
	w := newWorld(t, "a.example:22", func(c *Config) {
		c.Times.Next = 20 * time.Millisecond
		c.Times.Dial = 300 * time.Millisecond
		c.Addrs = func([]string) []netip.Addr {
			return []netip.Addr{netip.MustParseAddr("2001:db8:1::1"), netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("203.0.113.2")}
		}
	})
	for _, first := range []string{"", "refuse"} {
		w.serve("203.0.113.2:22", echo)
		w.servers["[2001:db8:1::1]:22"] = first
		w.forget()
		up, err := w.relay.Dial(t.Context(), target("a.example", "2001:db8:1::1", 22))
		if err != nil || fmt.Sprint(w.dialed) != "[[2001:db8:1::1]:22 203.0.113.2:22]" {
			t.Fatalf("%v, %s", err, w.dialed)
		}
		up.Close()
		delete(w.servers, "203.0.113.2:22")
		_, err = w.relay.Dial(t.Context(), target("a.example", "2001:db8:1::1", 22))
		var refusal *Refusal
		if !errors.As(err, &refusal) || refusal.Verdict.Reason != rule.Upstream || refusal.Err == nil {
			t.Errorf("%q: %v", first, err)
		}
		if does := strings.Contains(w.said("upstream"), "it does not answer"); does != (first == "") || w.relay.open != 0 {
			t.Errorf("%q: %d open, %s", first, w.relay.open, w.said("refused"))
		}
	}
}

// TestGivesUp: a client that does not wait for its connect is no refusal, and leaves no place taken.
func TestGivesUp(t *testing.T) {
	w := newWorld(t, "a.example:22", nil)
	w.servers["203.0.113.1:22"] = ""
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := w.relay.Dial(ctx, target("a.example", "203.0.113.1", 22))
	if err == nil || w.said("") != "" || w.relay.open != 0 {
		t.Errorf("%v, %d open, %s", err, w.relay.open, w.said(""))
	}
}

// TestLimit: one connection too many is refused, and each end makes room.
func TestLimit(t *testing.T) {
	w := newWorld(t, "a.example:22", func(c *Config) { c.Most = 2 })
	w.serve("203.0.113.1:22", echo)
	at := target("a.example", "203.0.113.1", 22)
	first, err := w.relay.Dial(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	client, inner := pair(t)
	go w.relay.Serve(inner, at, first)
	w.relay.Dial(t.Context(), at)
	_, err = w.relay.Dial(t.Context(), at)
	if err == nil || !strings.Contains(err.Error(), "2 are open") {
		t.Errorf("the third: %v", err)
	}
	client.Close()
	eventually(t, "room", func() bool {
		_, err := w.relay.Dial(t.Context(), at)
		return err == nil
	})
}

// TestSilent: a client that says nothing takes a place, too, and gives it back.
func TestSilent(t *testing.T) {
	w := newWorld(t, "a.example", func(c *Config) { c.Most = 1 })
	at := target("a.example", "203.0.113.1", 443)
	first := w.connect(at)
	eventually(t, "a place taken", func() bool {
		w.relay.mu.Lock()
		defer w.relay.mu.Unlock()
		return w.relay.open == 1
	})
	_, err := io.ReadAll(w.connect(at))
	if err == nil || !strings.Contains(w.said("refused limit"), "1 are open") {
		t.Errorf("the second: %v, %s", err, w.said(""))
	}
	first.Close()
	eventually(t, "room", func() bool {
		release, _ := w.relay.take()
		return release != nil
	})
	if strings.Contains(w.said(""), "sni") || len(w.dialed) > 0 {
		t.Errorf("%s, %s", w.dialed, w.said(""))
	}
}

// TestSlow: what is begun must be complete in time, in whatever pieces. Nothing of it arrives before.
func TestSlow(t *testing.T) {
	w := newWorld(t, "a.example, a.example:80, a.example:9", func(c *Config) { c.Times.Hello = 200 * time.Millisecond })
	got := make(chan int, 10)
	count := func(c *net.TCPConn) {
		n, _ := io.Copy(io.Discard, c)
		got <- int(n)
	}
	for _, at := range []string{"203.0.113.1:443", "203.0.113.1:80", "203.0.113.1:9"} {
		w.serve(at, count)
	}
	whole := greeting(t, "a.example")
	for port, text := range map[uint16]string{443: string(whole[:100]), 80: "GET / HTTP/1.1\r\nHost: a.exa", 9: "\x16\x03"} {
		client := w.connect(target("a.example", "203.0.113.1", port))
		for i := range text {
			io.WriteString(client, text[i:i+1])
		}
		_, err := io.ReadAll(client)
		if err == nil || w.said("refused") != "" {
			t.Errorf("port %d: %v, %s", port, err, w.said(""))
		}
	}
	if n := <-got; n != 0 || len(got) > 0 {
		t.Errorf("%d bytes have arrived", n)
	}
	var records []byte
	for _, b := range whole[5:] {
		records = append(records, 22, 3, 1, 0, 1, b)
	}
	client := w.connect(target("a.example", "203.0.113.1", 443))
	client.Write(records)
	client.CloseWrite()
	if n := <-got; n != len(records) {
		t.Errorf("in one-byte records: %d bytes have arrived of %d, %s", n, len(records), w.said(""))
	}
}

// TestDrain: what a client has sent before it ended arrives, however slowly. What can't is reset, and said.
func TestDrain(t *testing.T) {
	const size = 8 << 20
	w := newWorld(t, "slow.example:9, stuck.example:9", func(c *Config) { c.Times.Quiet = 700 * time.Millisecond })
	got := make(chan int, 1)
	w.serve("203.0.113.1:9", func(c *net.TCPConn) {
		n := 0
		buffer := make([]byte, 256<<10)
		for {
			k, err := c.Read(buffer)
			n += k
			if n == size && k > 0 {
				io.WriteString(c, "nobody reads this") // the client has gone
			}
			if err != nil {
				if err != io.EOF {
					n = -1
				}
				got <- n
				c.Close()
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
	stuck := make(chan error, 1)
	w.serve("203.0.113.2:9", func(c *net.TCPConn) {
		time.Sleep(2500 * time.Millisecond)
		_, err := io.Copy(io.Discard, c)
		stuck <- err
	})
	send := func(t Target) {
		client := w.connect(t)
		client.Write(make([]byte, size))
		client.Close()
	}
	send(target("slow.example", "203.0.113.1", 9))
	if cut := w.relay.Drain(t.Context()); cut != 0 || w.said("cut") != "" {
		t.Errorf("%d are cut off: %s", cut, w.said("cut"))
	}
	if n := <-got; n != size {
		t.Errorf("%d bytes have arrived", n)
	}
	w.relay.mu.Lock()
	w.relay.ended = false
	w.relay.mu.Unlock()
	go send(target("stuck.example", "203.0.113.2", 9))
	eventually(t, "a connection", func() bool { return strings.Contains(w.said("opened"), "stuck") })
	if cut := w.relay.Drain(t.Context()); cut != 1 || w.said("cut") == "" {
		t.Errorf("%d are cut off: %s", cut, w.said(""))
	}
	if err := <-stuck; err == nil {
		t.Error("the server sees a clean end")
	}
	late := w.connect(target("slow.example", "203.0.113.1", 9))
	if _, err := io.ReadAll(late); err == nil {
		t.Error("a connection after the end is taken")
	}
}

// TestReset: a reset of one side reaches the other.
func TestReset(t *testing.T) {
	w := newWorld(t, "a.example:9", nil)
	got := make(chan error, 1)
	w.serve("203.0.113.1:9", func(c *net.TCPConn) {
		_, err := io.Copy(io.Discard, c)
		got <- err
	})
	client := w.connect(target("a.example", "203.0.113.1", 9))
	client.Write(make([]byte, 1000000))
	client.SetLinger(0)
	client.Close()
	if err := <-got; err == nil {
		t.Error("the server sees a clean end")
	}
	w.serve("203.0.113.1:9", func(c *net.TCPConn) {
		c.Write(make([]byte, 1000000))
		c.SetLinger(0)
		c.Close()
	})
	client = w.connect(target("a.example", "203.0.113.1", 9))
	if _, err := io.Copy(io.Discard, client); err == nil {
		t.Error("the client sees a clean end")
	}
}

// TestIdle: an idle connection that was busy costs the relay two descriptors and at most 16 KB more
// than the client and the server of this test cost without it.
func TestIdle(t *testing.T) {
	const many = 300
	zeros := bytes.Repeat([]byte{0}, 50000)
	w := newWorld(t, "a.example:9, a.example:80", nil)
	for _, at := range []string{"203.0.113.1:9", "203.0.113.1:80"} {
		w.serve(at, func(c *net.TCPConn) {
			buffer := make([]byte, 1)
			io.ReadFull(c, buffer)
			for range 20 {
				c.Write(zeros)
			}
			for err := error(nil); err == nil; {
				_, err = c.Read(buffer)
			}
			c.Close()
		})
	}
	memory := map[uint16]int{}
	files := map[uint16]int{}
	for _, port := range []uint16{0, 9, 80} {
		before, open := used()
		for range many {
			c := w.idle(port)
			defer c.Close()
		}
		time.Sleep(3 * idle)
		after, now := used()
		memory[port] = (after - before) / many
		files[port] = (now - open + many/2) / many
	}
	t.Logf("bytes and descriptors without the relay, by bytes and by HTTP: %v, %v", memory, files)
	for _, port := range []uint16{9, 80} {
		if memory[port]-memory[0] > 16<<10 && !raced {
			t.Errorf("port %d: more than 16 KB each", port)
		}
		if files[port]-files[0] > 2 {
			t.Errorf("port %d: more than two descriptors each", port)
		}
	}
}

// idle returns a connection that was busy, through the relay or, for port 0, without it.
func (w *world) idle(port uint16) net.Conn {
	var c net.Conn
	if port != 0 {
		c = w.connect(target("a.example", "203.0.113.1", port))
	} else {
		c, _ = w.dial(w.t.Context(), "203.0.113.1:9")
	}
	text := "x"
	if port == 80 {
		text = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"
	}
	io.WriteString(c, text)
	if _, err := io.CopyN(io.Discard, c, 20*50000); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// used returns how much memory and how many descriptors this process uses.
func used() (bytes, files int) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	all, _ := os.ReadDir("/proc/self/fd") // none on other systems
	return int(m.HeapAlloc + m.StackInuse), len(all)
}

// BenchmarkPass is one download.
func BenchmarkPass(b *testing.B) {
	w := newWorld(b, "a.example:9", nil)
	w.serve("203.0.113.1:9", func(c *net.TCPConn) {
		buffer := make([]byte, 1<<20)
		for range b.N {
			c.Write(buffer)
		}
		c.Close()
	})
	b.SetBytes(1 << 20)
	c := w.connect(target("a.example", "203.0.113.1", 9))
	c.SetDeadline(time.Time{})
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, c, make([]byte, 1<<20))
	if n != int64(b.N)<<20 || err != nil {
		b.Errorf("%d bytes, %v", n, err)
	}
}

// BenchmarkConnect is a connection with one byte each way.
func BenchmarkConnect(b *testing.B) {
	w := newWorld(b, "a.example:9", nil)
	w.serve("203.0.113.1:9", echo)
	one := make([]byte, 1)
	for b.Loop() {
		c := w.connect(target("a.example", "203.0.113.1", 9))
		c.Write(one)
		io.ReadFull(c, one)
		c.Close()
	}
	w.relay.Drain(context.Background())
}

// TestOtherMethods: where only HTTP may come, a method can be any.
func TestOtherMethods(t *testing.T) {
	w := newWorld(t, "a.example:80", nil)
	w.serve("203.0.113.1:80", echo)
	for request, want := range map[string]string{
		"PURGE /x HTTP/1.1\r\nHost: a.example\r\n\r\n":    "",
		"PURGE /x HTTP/1.1\r\nHost: evil.example\r\n\r\n": `the HTTP request asks for "evil.example"`,
		"EHLO a.example\r\n":                              "this is something else",
	} {
		client := w.connect(target("a.example", "203.0.113.1", 80))
		io.WriteString(client, request)
		client.CloseWrite()
		got, _ := io.ReadAll(client)
		if said := w.said("refused"); (string(got) == request) != (want == "") || !strings.Contains(said, want) {
			t.Errorf("%q: %q, %s", request, got, said)
		}
		w.forget()
	}
}
