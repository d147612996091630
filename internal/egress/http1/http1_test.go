package http1_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/zsbx/zsbx/internal/egress/http1"
)

// passed is one request as it was read.
type passed struct {
	method, target, host, body string
}

// pass reads all requests, and returns them and what was passed on.
func pass(r io.Reader) (all []passed, out string, err error) {
	var b bytes.Buffer
	in := http1.NewReader(r)
	for {
		q, err := in.Next()
		if err != nil {
			return all, b.String(), err
		}
		b.Write(q.Bytes(q.Target))
		start := b.Len()
		err = in.Body(q, &b)
		if err != nil {
			return all, b.String(), err
		}
		all = append(all, passed{q.Method, q.Target, q.Host, b.String()[start:]})
	}
}

// lines writes a head, or several.
func lines(all ...string) string { return strings.Join(all, "\r\n") + "\r\n" }

// TestPass: what is read and passed on as it is.
func TestPass(t *testing.T) {
	for name, text := range map[string]string{
		"one":       lines("GET / HTTP/1.1", "Host: a.example", "Accept: */*", ""),
		"two":       lines("GET / HTTP/1.1", "Host: a.example", "", "HEAD /x HTTP/1.1", "host:a.example:80", ""),
		"length":    lines("POST / HTTP/1.1", "Host: a.example", "Content-Length: 5", "", "he") + "l" + lines("GET / HTTP/1.1", "Host: b.example", ""),
		"chunks":    lines("POST / HTTP/1.1", "Host: a.example", "Transfer-Encoding: chunked", "", "5", "hello", "0A", "0123456789", "0", "X: y", "", "GET / HTTP/1.0", "Host: a.example", ""),
		"absolute":  lines("GET http://a.example/x?y HTTP/1.1", "Host: a.example", ""),
		"asterisk":  lines("OPTIONS * HTTP/1.1", "Host: a.example", ""),
		"headers":   lines("GET / HTTP/1.1", "Host: a.example"+strings.Repeat("\r\na:b", 255), ""),
		"trailers":  lines("POST / HTTP/1.1", "Host: a.example", "Transfer-Encoding: chunked", "", "0"+strings.Repeat("\r\na:b", 256), ""),
		"long head": lines("GET / HTTP/1.1", "Host: a.example", "Cookie: "+strings.Repeat("x", 60000), ""),
	} {
		all, out, err := pass(iotest.OneByteReader(strings.NewReader(text)))
		if err != io.EOF || out != text || len(all) == 0 {
			t.Errorf("%s: %v, %v\n%q\n%q", name, all, err, out, text)
		}
	}
}

// TestHTTP2Offer: an offer of HTTP/2 is taken out, since a server may ignore it.
func TestHTTP2Offer(t *testing.T) {
	text := lines("GET / HTTP/1.1", "Host: a.example", "Connection: Upgrade, keep-alive, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQA", "")
	_, out, err := pass(strings.NewReader(text))
	if err != io.EOF || out != lines("GET / HTTP/1.1", "Host: a.example", "Connection: keep-alive", "") {
		t.Errorf("%q, %v", out, err)
	}
}

// TestFaults: what could be read in two ways.
func TestFaults(t *testing.T) {
	get := func(more ...string) string {
		return lines(append([]string{"GET / HTTP/1.1", "Host: a.example"}, append(more, "")...)...)
	}
	for name, text := range map[string]string{
		"no host":              lines("GET / HTTP/1.1", "Accept: */*", ""),
		"no host in 1.0":       lines("GET / HTTP/1.0", ""),
		"two hosts":            get("Host: b.example"),
		"same host twice":      get("hOST: a.example"),
		"LF only":              "GET / HTTP/1.1\nHost: a.example\n\n",
		"one LF":               "GET / HTTP/1.1\r\nHost: a.example\nHost: b.example\r\n\r\n",
		"CR within":            "GET / HTTP/1.1\r\nHost: a.example\rHost: b.example\r\n\r\n",
		"NUL":                  get("X: a\x00b"),
		"fold":                 get("X: y", " Host: b.example"),
		"fold first":           lines("GET / HTTP/1.1", " Host: b.example", "Host: a.example", ""),
		"space before colon":   get("Host : b.example"),
		"no colon":             get("nothing"),
		"no name":              get(": x"),
		"HTTP/2":               "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"HTTP/0.9":             "GET /\r\n",
		"HTTP/1.2":             lines("GET / HTTP/1.2", "Host: a.example", ""),
		"two spaces":           lines("GET  / HTTP/1.1", "Host: a.example", ""),
		"tab":                  lines("GET\t/ HTTP/1.1", "Host: a.example", ""),
		"empty line first":     "\r\n" + get(),
		"other absolute":       lines("GET http://b.example/ HTTP/1.1", "Host: a.example", ""),
		"absolute with user":   lines("GET http://a.example@b.example/ HTTP/1.1", "Host: a.example@b.example", ""),
		"other scheme":         lines("GET https://a.example/ HTTP/1.1", "Host: a.example", ""),
		"no path":              lines("GET a.example HTTP/1.1", "Host: a.example", ""),
		"asterisk of GET":      lines("GET * HTTP/1.1", "Host: a.example", ""),
		"websocket":            get("Connection: Upgrade", "Upgrade: websocket"),
		"two upgrades":         get("Upgrade: h2c", "Upgrade: websocket"),
		"TE and CL":            get("Content-Length: 3", "Transfer-Encoding: chunked"),
		"TE in 1.0":            lines("GET / HTTP/1.0", "Host: a.example", "Transfer-Encoding: chunked", ""),
		"TE with _":            get("Transfer_Encoding: chunked"),
		"CL with _":            get("CONTENT_LENGTH: 3"),
		"TE list":              get("Transfer-Encoding: gzip, chunked"),
		"many headers":         get(strings.Split(strings.Repeat("a:b ", 256)[:1023], " ")...),
		"many trailers":        get("Transfer-Encoding: chunked", "", "0"+strings.Repeat("\r\na:b", 257)),
		"TE with another i":    get("Transfer-Encod\u0130ng: chunked"),
		"TE with another k":    get("Transfer-Encoding: chun\u212aed"),
		"TE twice":             get("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
		"TE identity":          get("Transfer-Encoding: identity"),
		"TE with tab":          get("Transfer-Encoding: \x0bchunked"),
		"two CL":               get("Content-Length: 0", "Content-Length: 0"),
		"CL list":              get("Content-Length: 0, 0"),
		"CL sign":              get("Content-Length: +0"),
		"CL negative":          get("Content-Length: -1"),
		"CL hex":               get("Content-Length: 0x1"),
		"CL empty":             get("Content-Length:"),
		"CL huge":              get("Content-Length: 99999999999999999999"),
		"chunk extension":      get("Transfer-Encoding: chunked", "", "1;a=b", "x", "0"),
		"chunk space":          get("Transfer-Encoding: chunked", "", "1 ", "x", "0"),
		"chunk sign":           get("Transfer-Encoding: chunked", "", "+1", "x", "0"),
		"chunk prefix":         get("Transfer-Encoding: chunked", "", "0x1", "x", "0"),
		"chunk too long":       get("Transfer-Encoding: chunked", "", "1", "xy", "0"),
		"chunk huge":           get("Transfer-Encoding: chunked", "", "fffffffffffffffff", "xy", "0"),
		"chunk LF":             get("Transfer-Encoding: chunked", "", "1\nx"),
		"trailer Host":         get("Transfer-Encoding: chunked", "", "0", "Host: b.example"),
		"trailer length":       get("Transfer-Encoding: chunked", "", "0", "Content-Length: 9"),
		"head too long":        get("X: " + strings.Repeat("x", 65536)),
		"too many headers":     get(strings.Repeat("X: y\r\n", 20000)),
		"endless chunk line":   get("Transfer-Encoding: chunked", "", strings.Repeat("0", 70000)),
		"target not ASCII":     lines("GET /é HTTP/1.1", "Host: a.example", ""),
		"method not a token":   lines("GE(T / HTTP/1.1", "Host: a.example", ""),
		"second is wrong":      get() + lines("GET / HTTP/1.1", "Host: a.example", "Host: b.example", ""),
		"garbage after length": lines("POST / HTTP/1.1", "Host: a.example", "Content-Length: 2", "", "hello", ""),
	} {
		_, out, err := pass(strings.NewReader(text))
		var f http1.Fault
		if !errors.As(err, &f) || strings.Contains(out, "b.example") {
			t.Errorf("%s: %v\n%q", name, err, out)
		}
	}
	whole := lines("POST / HTTP/1.1", "Host: a.example", "Content-Length: 5", "", "hel")
	for n := 1; n < len(whole); n++ {
		_, _, err := pass(strings.NewReader(whole[:n]))
		if err != io.ErrUnexpectedEOF {
			t.Fatalf("%q: %v", whole[:n], err)
		}
	}
}

// TestBegins: what may still become a request is not known to be none.
func TestBegins(t *testing.T) {
	for text, want := range map[string][2]bool{
		"": {}, "GE": {}, "GET ": {}, "GET /x": {}, "GET / HTTP/1.1": {true, true}, "GET key\r\n": {false, true},
		"SSH-2.0": {false, true}, "GETX": {false, true}, "get ": {false, true}, "PRI * HTTP/2.0\r\n": {true, true}, "EHLO x\r\n": {false, true},
		"PURGE /x HTTP/1.1\r\n": {false, true},
	} {
		yes, known := http1.Begins([]byte(text), true)
		if yes != want[0] || known != want[1] {
			t.Errorf("%q: %v, %v", text, yes, known)
		}
	}
	for text, want := range map[string][2]bool{
		"": {}, "PUR": {}, "PURGE /x": {}, "PURGE /x HTTP/1.1\r\n": {true, true}, "GET key\r\n": {false, true}, "EHLO x\r\n": {false, true},
		"SSH-2.0-x\r\n": {false, true}, "\x16\x03": {false, true}, strings.Repeat("X", 65): {false, true}, " HTTP/1.1\r\n": {false, true},
	} {
		yes, known := http1.Begins([]byte(text), false)
		if yes != want[0] || known != want[1] {
			t.Errorf("%q, nothing else may come: %v, %v", text, yes, known)
		}
	}
}

// FuzzHTTP1: net/http finds the same requests in what is passed on, or refuses them.
func FuzzHTTP1(f *testing.F) {
	f.Add([]byte(lines("POST / HTTP/1.1", "Host: a.example", "Transfer-Encoding: chunked", "", "5", "hello", "0", "X: y", "", "GET http://a.example/ HTTP/1.0", "Host: a.example", "")))
	f.Add([]byte(lines("POST / HTTP/1.1", "Host: a.example", "Content-Length: 3", "", "abc") + lines("GET / HTTP/1.1", "Host: b", "Upgrade: h2c", "Connection: upgrade", "")))
	f.Add([]byte(lines("GET / HTTP/1.1", "Host: a", " fold", "")))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, out, _ := pass(bytes.NewReader(data))
		theirs := bufio.NewReader(strings.NewReader(out))
		for _, q := range all {
			r, err := http.ReadRequest(theirs)
			if err != nil {
				return
			}
			if !strings.EqualFold(r.Host, q.host) || r.Method != q.method || r.RequestURI != q.target {
				t.Fatalf("%+v here, %q %q %q for net/http", q, r.Method, r.RequestURI, r.Host)
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			same := string(body) == q.body || r.TransferEncoding != nil && len(body) < len(q.body)
			if !same {
				t.Fatalf("a body of %q here, %q for net/http", q.body, body)
			}
		}
	})
}
