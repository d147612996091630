package relay

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/zsbx/zsbx/internal/egress/http1"
	"github.com/zsbx/zsbx/internal/egress/rule"
)

// Proxies are those that zsbx's own environment names.
type Proxies struct {
	http  *Proxy
	https *Proxy
	not   []string // of NO_PROXY, in lower case
}

// Proxy is one of them. Its password is in no message.
type Proxy struct {
	address string // NAME:PORT
	auth    string // of Proxy-Authorization; "" if none
}

// Variables are the values of the variables with these names, in either case.
type Variables struct {
	HTTPProxy, HTTPSProxy, AllProxy, NoProxy string
}

// ParseProxies reads them. It is nil without a proxy.
func ParseProxies(v Variables) (*Proxies, error) {
	var p Proxies
	var err error
	for _, one := range []struct {
		to    **Proxy
		name  string
		texts []string
	}{
		{&p.http, "http_proxy", []string{v.HTTPProxy, v.AllProxy}},
		{&p.https, "https_proxy", []string{v.HTTPSProxy, v.AllProxy}},
	} {
		text := one.texts[0]
		if text == "" {
			text = one.texts[1]
		}
		*one.to, err = parseProxy(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.name, err)
		}
	}
	for word := range strings.FieldsFuncSeq(v.NoProxy, func(c rune) bool { return c == ',' || c == ' ' }) {
		p.not = append(p.not, strings.ToLower(word))
	}
	if p.http == nil && p.https == nil {
		return nil, nil
	}
	return &p, nil
}

// parseProxy reads http://USER:PASSWORD@NAME:PORT. Its errors don't have the text.
func parseProxy(text string) (*Proxy, error) {
	if text == "" {
		return nil, nil
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return nil, errors.New("it is no address of a proxy")
	}
	if u.Scheme != "http" {
		return nil, fmt.Errorf("a proxy by %s is not known, only by http", rule.Quote(u.Scheme))
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	p := &Proxy{address: net.JoinHostPort(u.Hostname(), port)}
	if u.User != nil {
		password, _ := u.User.Password()
		both := u.User.Username() + ":" + password
		p.auth = "Basic " + base64.StdEncoding.EncodeToString([]byte(both))
	}
	return p, nil
}

// For returns the proxy by which what is allowed is reached, or nil.
func (p *Proxies) For(v rule.Verdict) *Proxy {
	if p == nil || p.exempt(v.Host, v.Port) {
		return nil
	}
	if v.Rule.Kind == rule.HTTP {
		return p.http
	}
	return p.https
}

// exempt reports whether NO_PROXY has a host.
func (p *Proxies) exempt(host string, port uint16) bool {
	addr, err := netip.ParseAddr(host)
	isAddr := err == nil
	if host == "localhost" || isAddr && addr.IsLoopback() {
		return true
	}
	for _, word := range p.not {
		name, wanted, hasPort := strings.Cut(word, ":")
		if hasPort && strings.Count(word, ":") == 1 {
			if wanted != strconv.Itoa(int(port)) {
				continue
			}
			word = name
		}
		if word == "*" || word == host {
			return true
		}
		prefix, err := netip.ParsePrefix(word)
		if isAddr && err == nil && prefix.Contains(addr) {
			return true
		}
		suffix := strings.TrimPrefix(strings.TrimPrefix(word, "*"), ".")
		if !isAddr && strings.HasSuffix(host, "."+suffix) {
			return true
		}
	}
	return false
}

// Tunnel connects to a host by the proxy for TLS. to is "HOST:PORT".
func (p *Proxies) Tunnel(ctx context.Context, dial Dialer, to string) (net.Conn, error) {
	conn, err := dial(ctx, p.https.address)
	if err != nil {
		return nil, fmt.Errorf("the proxy %s: %w", p.https.address, cause(err))
	}
	err = p.https.tunnel(ctx, conn, to)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// tunnel asks a proxy for a connection to a host, which it has by its name.
func (p *Proxy) tunnel(ctx context.Context, c net.Conn, to string) error {
	if end, ok := ctx.Deadline(); ok {
		c.SetDeadline(end)
		defer c.SetDeadline(time.Time{})
	}
	ask := "CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n"
	if p.auth != "" {
		ask += "Proxy-Authorization: " + p.auth + "\r\n"
	}
	if _, err := io.WriteString(c, ask+"\r\n"); err != nil {
		return err
	}
	head, err := readHead(c)
	if err != nil {
		return err
	}
	line, _, _ := strings.Cut(head, "\r\n")
	words := strings.SplitN(line, " ", 3)
	if len(words) < 2 || !strings.HasPrefix(words[0], "HTTP/1.") || len(words[1]) != 3 {
		return errors.New("the proxy does not speak HTTP")
	}
	if words[1][0] != '2' {
		return fmt.Errorf("the proxy says %s", strings.Join(words[1:], " "))
	}
	return nil
}

// readHead reads the head of an answer, and nothing after it.
func readHead(c net.Conn) (string, error) {
	const most = 16 << 10
	var head []byte
	one := make([]byte, 1)
	for len(head) < most {
		if _, err := io.ReadFull(c, one); err != nil {
			return "", fmt.Errorf("the proxy does not answer: %w", err)
		}
		head = append(head, one[0])
		if strings.HasSuffix(string(head[max(0, len(head)-4):]), "\r\n\r\n") {
			return string(head), nil
		}
	}
	return "", errors.New("the proxy's answer is too long")
}

// head writes a request for upstream, without what is for a proxy before this one. A proxy gets an
// absolute target and its credentials: where the rules allow it to go, whatever the Host says of a port.
func (u *Up) head(q *http1.Request, v rule.Verdict) []byte {
	q.Drop("proxy-authorization")
	q.Drop("proxy-connection")
	if u.proxy == nil {
		return q.Bytes(q.Path)
	}
	if u.proxy.auth != "" && q.Method != "TRACE" { // a proxy may answer with what it was sent
		q.Add("Proxy-Authorization", u.proxy.auth)
	}
	target := "http://" + v.Host
	if v.Port != 80 {
		target += ":" + strconv.Itoa(int(v.Port))
	}
	return q.Bytes(target + strings.TrimPrefix(q.Path, "*"))
}
