package internet

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
)

// web starts HTTP, TLS and the proxy.
func (s *servers) web() error {
	plain, err := s.listen(80)
	if err != nil {
		return err
	}
	quiet := log.New(io.Discard, "", 0)
	go (&http.Server{Handler: http.HandlerFunc(s.page), ErrorLog: quiet}).Serve(plain)
	for _, port := range []int{443, 853} {
		l, err := s.listen(port)
		if err != nil {
			return err
		}
		h := &http.Server{Handler: http.HandlerFunc(s.page), ErrorLog: quiet}
		h.TLSConfig = &tls.Config{GetCertificate: s.certificate}
		go h.ServeTLS(l, "", "")
	}
	p, err := s.listen(3128)
	if err != nil {
		return err
	}
	go (&http.Server{Handler: http.HandlerFunc(s.proxy), ErrorLog: quiet}).Serve(p)
	return nil
}

// certificate makes a certificate for any name.
func (s *servers) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.log("tls %s at %s", hello.ServerName, host(hello.Conn.LocalAddr()))
	name := hello.ServerName
	if name == "" {
		name = "nameless.example"
	}
	return s.issuer.issue(name)
}

// pages are what package managers and Git ask for, by the end of the path.
var pages = map[string]string{
	"/r.git/info/refs": "0123456789012345678901234567890123456789\trefs/heads/main\n",
	"/r.git/HEAD":      "ref: refs/heads/main\n",
	"/simple/pkg/":     `<a href="pkg-1.0-py3-none-any.whl">pkg</a>`,
	"/npm/pkg": `{"name":"pkg","dist-tags":{"latest":"1.0.0"},` +
		`"versions":{"1.0.0":{"name":"pkg","version":"1.0.0","dist":{}}}}`,
	"/@v/list":           "v1.0.0\n",
	"/@v/v1.0.0.info":    `{"Version":"v1.0.0","Time":"2020-01-01T00:00:00Z"}`,
	"/cargo/config.json": `{"dl":"https://a.example/cargo/dl"}`,
	"/3/p/pkg": `{"name":"pkg","vers":"1.0.0","deps":[],"features":{},"yanked":false,` +
		`"cksum":"0000000000000000000000000000000000000000000000000000000000000000"}`,
}

// page answers a request. /big has as many bytes as its query says.
func (s *servers) page(w http.ResponseWriter, r *http.Request) {
	s.log("http %s %s %s", r.Method, r.Host, r.URL.Path)
	_, _ = io.Copy(io.Discard, r.Body)
	for end, text := range pages {
		if strings.HasSuffix(r.URL.Path, end) {
			if strings.HasPrefix(end, "/simple") {
				w.Header().Set("Content-Type", "text/html")
			}
			fmt.Fprint(w, text)
			return
		}
	}
	fmt.Fprintf(w, "page of %s\n", r.Host)
}

// proxy passes on what is for a name of the zone.
func (s *servers) proxy(w http.ResponseWriter, r *http.Request) {
	target := r.Host
	if r.Method != http.MethodConnect {
		target = r.URL.String()
	}
	s.log("proxy %s %s %s", r.Method, target, r.Header.Get("Proxy-Authorization"))
	name, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		name = r.Host
		port = "80"
	}
	addrs := find(name, true)
	if len(addrs) == 0 || strings.HasSuffix(name, "evil.example") {
		http.Error(w, "not by this proxy", http.StatusForbidden)
		return
	}
	to := net.JoinHostPort(addrs[0].String(), port)
	if r.Method != http.MethodConnect {
		(&httputil.ReverseProxy{Transport: &http.Transport{}, Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "http", Host: to})
			p.Out.Host = r.Host
		}}).ServeHTTP(w, r)
		return
	}
	up, err := net.Dial("tcp", to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	c, b, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
	go pass(up, b.Reader)
	_, _ = io.Copy(c, up)
	c.Close()
}

// pass copies until the client ends.
func pass(up net.Conn, from *bufio.Reader) {
	_, _ = io.Copy(up, from)
	_ = up.(*net.TCPConn).CloseWrite()
}
