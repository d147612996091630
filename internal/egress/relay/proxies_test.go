package relay

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/egress/rule"
)

// TestProxies: a proxy gets the name and the credentials, which are in no message.
func TestProxies(t *testing.T) {
	p, err := ParseProxies(Variables{HTTPProxy: "http://me:secret@proxy.example:3128", HTTPSProxy: "me:secret@proxy.example:3128", NoProxy: "near.example"})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "a.example:80, a.example:8080/http, b.example:22, near.example:22, b.example:23", func(c *Config) { c.Proxies = p })
	asked := make(chan string, 10)
	answer := "200 OK"
	w.serve("proxy.example:3128", func(c *net.TCPConn) {
		in := bufio.NewReader(c)
		q, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		asked <- fmt.Sprintf("%s %s %s", q.Method, q.RequestURI, q.Header.Get("Proxy-Authorization"))
		io.WriteString(c, "HTTP/1.1 "+answer+"\r\nX: y\r\n\r\n")
		if q.Method == "CONNECT" && answer == "200 OK" {
			io.WriteString(c, "hello")
		}
		c.Close()
	})
	w.serve("203.0.113.1:22", func(c *net.TCPConn) {
		io.WriteString(c, "directly")
		c.Close()
	})
	const auth = " Basic bWU6c2VjcmV0"
	get := "GET /x HTTP/1.1\r\nHost: a.example\r\nProxy-Authorization: mine\r\n\r\n"
	for _, c := range []struct {
		to               Target
		send, got, asked string
	}{
		{target("b.example", "", 22), "", "hello", "CONNECT b.example:22" + auth},
		{target("near.example", "203.0.113.1", 22), "", "directly", ""},
		{target("a.example", "", 80), get, "HTTP/1.1 200 OK\r\nX: y\r\n\r\n", "GET http://a.example/x" + auth},
		{target("a.example", "", 80), "TRACE" + get[3:], "HTTP/1.1 200 OK\r\nX: y\r\n\r\n", "TRACE http://a.example/x "},
		{target("a.example", "", 8080), get, "HTTP/1.1 200 OK\r\nX: y\r\n\r\n", "GET http://a.example:8080/x" + auth},
	} {
		client := w.connect(c.to)
		io.WriteString(client, c.send)
		client.CloseWrite()
		all, _ := io.ReadAll(client)
		was := ""
		if c.asked != "" {
			was = <-asked
		}
		if string(all) != c.got || was != c.asked {
			t.Errorf("%v: %q, the proxy was asked for %q, %s", c.to.Ask.Names, all, was, w.said(""))
		}
	}
	answer = "403 For\x1bbidden"
	_, err = w.relay.Dial(t.Context(), target("b.example", "", 23))
	if err == nil || !strings.Contains(err.Error(), `the proxy says 403 For\x1bbidden`) {
		t.Errorf("refused: %v", err)
	}
	delete(w.servers, "proxy.example:3128")
	_, err = w.relay.Dial(t.Context(), target("b.example", "", 23))
	if err == nil || strings.Contains(w.said(""), "secret") || !strings.Contains(err.Error(), "the proxy proxy.example:3128") {
		t.Errorf("no proxy: %v", err)
	}
}

// TestProxyOfTwoKinds: a proxy that takes requests gets nothing else, though another name of the address is allowed raw
// bytes or TLS.
func TestProxyOfTwoKinds(t *testing.T) {
	p, err := ParseProxies(Variables{HTTPProxy: "http://proxy.example:3128", HTTPSProxy: "proxy.example:3128"})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "a.example:8080/http, b.example:8080, c.example:8080/tls", func(c *Config) { c.Proxies = p })
	asked := make(chan string, 10)
	w.serve("proxy.example:3128", func(c *net.TCPConn) {
		in := bufio.NewReader(c)
		line, _ := in.ReadString('\n')
		asked <- strings.TrimSpace(line)
		io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		c.Close()
	})
	evil := "\r\nCONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n"
	for _, c := range []struct {
		names      string
		send, want string
		blocking   bool
	}{
		{"a.example", "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", "GET http://a.example:8080/ HTTP/1.1", false},
		{"b.example", evil, "CONNECT b.example:8080 HTTP/1.1", false},
		{"a.example b.example", evil, "CONNECT b.example:8080 HTTP/1.1", false},
		{"a.example b.example", evil, "CONNECT b.example:8080 HTTP/1.1", true},
	} {
		to := target(c.names, "203.0.113.1", 8080)
		var up *Up
		if c.blocking {
			up, err = w.relay.Dial(t.Context(), to)
			if err != nil {
				t.Fatal(err)
			}
		}
		client, inner := pair(t)
		go w.relay.Serve(inner, to, up)
		io.WriteString(client, c.send)
		client.CloseWrite()
		io.ReadAll(client)
		if got := <-asked; got != c.want {
			t.Errorf("%s, blocking %t: the proxy was asked for %q", c.names, c.blocking, got)
		}
		client.Close()
	}
}

// TestNoProxy: what is reached directly.
func TestNoProxy(t *testing.T) {
	p, err := ParseProxies(Variables{AllProxy: "http://proxy.example", NoProxy: "near.example, .dot.example,*.star.example,10.0.0.0/8,port.example:8443,192.0.2.1"})
	if err != nil || p.https.address != "proxy.example:80" {
		t.Fatal(p, err)
	}
	for host, want := range map[string]bool{
		"near.example": true, "a.near.example": true, "farnear.example": false, "a.dot.example": true, "a.star.example": true, "10.1.2.3": true,
		"11.1.2.3": false, "port.example": false, "192.0.2.1": true, "localhost": true, "127.0.0.1": true, "::1": true, "far.example": false,
	} {
		v := rule.Verdict{Rule: &rule.Rule{Kind: rule.TLS}, Host: host, Port: 443}
		if (p.For(v) == nil) != want {
			t.Errorf("%s: %v", host, p.For(v))
		}
	}
	if none, err := ParseProxies(Variables{NoProxy: "*"}); none != nil || err != nil {
		t.Errorf("no proxy: %v, %v", none, err)
	}
	for _, bad := range []string{"socks5://me:secret@proxy.example", "http://me:secret@", "http://me:secret@a b", "http://%zz:secret@x"} {
		_, err := ParseProxies(Variables{HTTPSProxy: bad})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
