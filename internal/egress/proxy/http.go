package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/zsbx/zsbx/internal/egress/http1"
	"github.com/zsbx/zsbx/internal/egress/rule"
)

// http answers a request to a proxy, whose first byte is read.
func (f *Front) http(ctx context.Context, c net.Conn, first []byte) {
	var seen bytes.Buffer // all that was read
	in := http1.NewReader(io.TeeReader(io.MultiReader(bytes.NewReader(first), c), &seen))
	q, err := in.Next()
	if err != nil {
		answer(c, "400 Bad Request", "", "this is no request to a proxy: "+err.Error())
		return
	}
	if !same(q.Header("proxy-authorization"), f.basic()) {
		more := "Proxy-Authenticate: Basic realm=\"zsbx\"\r\n"
		answer(c, "407 Proxy Authentication Required", more, "the password of this session is needed")
		return
	}
	tunnel := q.Method == "CONNECT"
	host, port, ok := split(q)
	if !ok {
		answer(c, "400 Bad Request", "", "the request does not say which host it is for")
		return
	}
	up, t, err := f.open(ctx, c, host, port)
	if err != nil {
		why, line := reasonOf(err)
		answer(c, status(why), "", line)
		return
	}
	t.Once = !tunnel
	rest := seen.Bytes() // the relay reads the request again
	if tunnel {
		rest = rest[seen.Len()-in.Buffered():]
		if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
			up.Close()
			return
		}
	}
	f.pass(after(rest, c), t, up)
}

// split returns where a request to a proxy is for.
func split(q *http1.Request) (host string, port uint16, ok bool) {
	text := q.Target
	if q.Method != "CONNECT" {
		text = q.Host
		if !q.Absolute() {
			return "", 0, false
		}
		if i := strings.LastIndexByte(text, ':'); i < 0 || strings.HasSuffix(text, "]") {
			text += ":80"
		}
	} else if q.HasBody() {
		return "", 0, false
	}
	host, digits, err := net.SplitHostPort(text)
	n, err2 := strconv.ParseUint(digits, 10, 16)
	return host, uint16(n), err == nil && err2 == nil && n > 0 && host != ""
}

// status is how a refusal is answered.
func status(why rule.Reason) string {
	switch why {
	case rule.Upstream:
		return "502 Bad Gateway"
	case rule.Limit:
		return "503 Service Unavailable"
	}
	return "403 Forbidden"
}

// answer writes an answer of the proxy itself, after which it ends the connection.
func answer(c net.Conn, status, more, text string) {
	text = "zsbx: refused: " + text + "\n"
	head := "HTTP/1.1 %s\r\n%sConnection: close\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s"
	fmt.Fprintf(c, head, status, more, len(text), text)
}

// early is a connection of which some bytes were read already.
type early struct {
	net.Conn
	head []byte
}

// after returns a connection on which these bytes come first.
func after(head []byte, c net.Conn) net.Conn {
	if len(head) == 0 {
		return c
	}
	return &early{c, bytes.Clone(head)}
}

func (e *early) Read(b []byte) (int, error) {
	if len(e.head) == 0 {
		return e.Conn.Read(b)
	}
	n := copy(b, e.head)
	e.head = e.head[n:]
	return n, nil
}

// CloseWrite ends the direction to the client.
func (e *early) CloseWrite() error {
	if half, ok := e.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return e.Conn.Close()
}

// SetLinger says what Close does.
func (e *early) SetLinger(sec int) error {
	if tcp, ok := e.Conn.(interface{ SetLinger(int) error }); ok {
		return tcp.SetLinger(sec)
	}
	return nil
}
