package cmd

import (
	"regexp"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/internal/testkit/internet"
)

// way is a run with a network by name that must work, or be refused in a way that is said. In its
// script ZSBX is the beginning of a command line that runs a command with the hosts, and ACT one of
// an act.
type way struct {
	name   string
	hosts  string // rules, separated by blanks; those with a "!" are denied, with a "~" they may be private
	script string
	want   string // a pattern of what is printed
	seen   string // a pattern of what the servers see; "" for none
	not    string // a pattern of what they must not see; "" for none
	needs  string // a program, or "" for curl
	opts   internet.Options
	env    []string
}

const get = "curl -sS https://a.example/x"

var ways = []way{
	{name: "tty", hosts: "a.example", script: "ZSBX --tty -- " + get, want: "^page"},
	{name: "private home", hosts: "a.example", script: "unset HOME; ZSBX --private-home -- " + get, want: "^page"},
	{name: "private pids", hosts: "a.example", script: "ZSBX --private-pids -- " + get, want: "^page"},
	{name: "explain", hosts: "a.example", script: "ZSBX --explain -- " + get, want: "page of"},
	{name: "subtree", hosts: "a.example", script: "ZSBX --track subtree -- " + get, want: "^page"},
	{name: "all Unix sockets", hosts: "a.example", script: "ZSBX --unix / -- " + get, want: "^page"},
	{name: "kept", hosts: "a.example", script: `ZSBX --keep -- sh -c '(sleep 0.5; ` + get + ` >got; touch done) >/dev/null 2>&1 &'; ` +
		"until test -e done; do sleep 0.1; done; cat got", want: "^page"},
	{name: "stopped", hosts: "a.example a.example:7", script: "ZSBX -- " + stoppedScript + ` & sleep 0.3; kill -STOP $!; sleep 1; kill -CONT $!; wait`,
		want: "^echoed$", needs: "/usr/bin/python3"},
	{name: "two kinds of address, one without route", hosts: "eyes.example", script: "ZSBX -- curl -sS https://eyes.example/x", want: "^page",
		seen: "at 203.0.113.80"},
	{name: "the same in Python", hosts: "eyes.example:80", script: "ZSBX -- /usr/bin/python3 -c '" + eyesScript + "'", want: "page of",
		needs: "/usr/bin/python3"},
	{name: "the same in Node", hosts: "eyes.example:80", script: `ZSBX -- node -e 'require("http").get("http://eyes.example/x", r => r.pipe(process.stdout))'`,
		want: "^page", needs: "node"},
	{name: "several addresses without route", hosts: "many.example:80", script: "ZSBX -- curl -sS http://many.example/x", want: "^page"},
	{name: "search list", hosts: "a.example", script: "ZSBX -- " + get, want: "^page", not: "corp.local",
		opts: internet.Options{Resolv: "search corp.local\noptions ndots:5"}},
	{name: "hosts file", hosts: "here.example:80", script: "ZSBX -- curl -sS http://here.example/x", want: "^page of here", not: "dns ",
		opts: internet.Options{Hosts: "203.0.113.80 here.example"}},
	{name: "private in the hosts file", hosts: "here.example:80", script: "ZSBX -- curl -sS http://here.example/x", want: "private", not: "tcp |dns ",
		opts: internet.Options{Hosts: "10.38.140.27 here.example"}},
	{name: "allowed in the hosts file", hosts: "~here.example:80", script: "ZSBX -- curl -sS http://here.example/x", want: "^page of here",
		opts: internet.Options{Hosts: "10.38.140.27 here.example"}},
	{name: "resolve", hosts: "a.example", script: "ZSBX -- " + get, want: "^page",
		opts: internet.Options{NSS: "files resolve [!UNAVAIL=return] dns"}},
	{name: "proxy", hosts: "a.example", script: "ZSBX -- " + get, want: "^page", seen: `proxy CONNECT a\.example:443 Basic bWU6c2VjcmV0`,
		env: []string{"https_proxy=http://me:secret@203.0.113.3:3128"}},
	{name: "proxy for HTTP", hosts: "a.example:80", script: "ZSBX -- curl -sS http://a.example/x", want: "^page of a.example",
		seen: `proxy GET http://a\.example/x`, env: []string{"http_proxy=http://203.0.113.3:3128"}},
	{name: "proxy that knows more names", hosts: "x.behind.example", script: "ZSBX -- curl -sSk https://x.behind.example/x", want: "^page",
		env: []string{"https_proxy=http://203.0.113.3:3128"}},
	{name: "proxy that refuses", hosts: "evil.example", script: "ZSBX -- curl -sS https://evil.example/x", want: "403|proxy",
		not: "tls evil", env: []string{"https_proxy=http://me:secret@203.0.113.3:3128"}},
	{name: "no proxy", hosts: "a.example", script: "ZSBX -- " + get, want: "^page", not: "proxy",
		env: []string{"https_proxy=http://203.0.113.3:3128", "no_proxy=a.example"}},
	{name: "upload", hosts: "slow.example:9001", script: "ZSBX -- /usr/bin/python3 -c '" + uploadScript + "'; sleep 3", want: "^sent$",
		seen: "slow 16777216 clean", needs: "/usr/bin/python3"},
	{name: "upload, kept", hosts: "slow.example:9001", script: "ZSBX --keep -- /usr/bin/python3 -c '" + uploadScript + "'; sleep 3", want: "^sent$",
		seen: "slow 16777216 clean", needs: "/usr/bin/python3"},
	{name: "black holes", hosts: "hole.example:2222 a.example", script: "ZSBX -- /usr/bin/python3 -c '" + holesScript + "'", want: "^page$",
		needs: "/usr/bin/python3"},
	{name: "signal at a black hole", hosts: "hole.example:2222", script: "ZSBX -- /usr/bin/python3 -c '" + holeScript + "'",
		want: "^interrupted$", needs: "/usr/bin/python3"},
	{name: "SO_SNDTIMEO at a black hole", hosts: "hole.example:2222", script: "ZSBX -- /usr/bin/python3 -c '" + sendTimeoutScript + "'",
		want: "^115$", needs: "/usr/bin/python3"},
	{name: "nobody listens", hosts: "a.example:4000", script: "ZSBX -- ACT dial a.example:4000", want: "connection refused"},
	{name: "own server", hosts: "a.example", script: "ZSBX -- /usr/bin/python3 -c '" + ownScript + "'", want: "^served$", needs: "/usr/bin/python3"},
	{name: "own servers at this machine's address", hosts: "a.example", script: "ZSBX -- /usr/bin/python3 -c '" + ownAddressScript + "'",
		want: "^192.0.2.1 2001:db8::1 served 12, refused 2$", not: "tcp |udp ", needs: "/usr/bin/python3"},
	{name: "own servers at this machine's other addresses", hosts: "a.example", needs: "/usr/bin/python3",
		script: "ZSBX -- /usr/bin/python3 -c '" + machineScript + "' 2>err; grep -c 'refused: 10.38.140.2[78]:80' err",
		want:   `^\[0, 0, 13, 13\]\n2$`, not: "tcp "},
	{name: "a host that has the same address", hosts: "many.example:80", script: "ZSBX -- /usr/bin/python3 -c '" + sameAddressScript + "'",
		want: "^own, 0$", seen: "tcp 80 at 203.0.113.80", needs: "/usr/bin/python3"},
	{name: "own servers with the relay's port", hosts: "203.0.113.80:7 [2001:db8::80]:7",
		script: "ZSBX -- /usr/bin/python3 -c '" + relayPortScript + "'", want: "^served served, refused 10$", needs: "/usr/bin/python3"},
	{name: "localhost", hosts: "localhost:5432", script: "ZSBX -- ACT dial 127.0.0.1:5432 x", want: `^"x"$`},
	{name: "localhost, another port", hosts: "localhost:5432", script: "ZSBX -- ACT dial 127.0.0.1:7 x", want: "permission denied", not: "tcp "},
	{name: "address", hosts: "203.0.113.80:80", script: "ZSBX -- curl -sS http://203.0.113.80/x", want: "^page", not: "dns "},
	{name: "address with IPv6", hosts: "[2001:db8::80]:80", script: "ZSBX -- curl -sS 'http://[2001:db8::80]/x'", want: "^page"},
	{name: "prefix", hosts: "10.38.0.0/16:80", script: "ZSBX -- curl -sS http://10.38.140.27/x", want: "^page"},
	{name: "address, another port", hosts: "203.0.113.80:80", script: "ZSBX -- ACT dial 203.0.113.80:7 x", want: "permission denied", not: "tcp "},
	{name: "wildcard", hosts: "*.wild.example:80", script: "ZSBX -- curl -sS http://x.y.wild.example/x", want: "^page"},
	{name: "a wildcard's parent", hosts: "*.wild.example:80", script: "ZSBX -- curl -sS http://wild.example/x", want: "not in", not: "dns |tcp "},
	{name: "every name", hosts: "*:80", script: "ZSBX -- curl -sS http://wild.example/x", want: "^page"},
	{name: "every name, a private address", hosts: "*:80", script: "ZSBX -- curl -sS http://corp.example/x", want: "private", not: "tcp "},
	{name: "private", hosts: "corp.example:80", script: "ZSBX -- curl -sS http://corp.example/x", want: "10.38.140.27 is private", not: "tcp "},
	{name: "private is allowed", hosts: "~corp.example:80", script: "ZSBX -- curl -sS http://corp.example/x", want: "^page"},
	{name: "denied", hosts: "*.wild.example:80 !x.wild.example", script: "ZSBX -- curl -sS http://x.wild.example/x", want: "denied|deny", not: "dns |tcp "},
	{name: "another port", hosts: "a.example", script: "ZSBX -- curl -sS http://a.example/x", want: "allowed on 443 only", not: "tcp "},
	{name: "messages that are none", hosts: "a.example", script: "ZSBX -- ACT dnsslow 203.0.113.1", want: `\\xcb\\x00qP`, not: "evil"},
	{name: "many refusals", hosts: "a.example", script: "ZSBX -- ACT many 300 2>err; grep -c 'zsbx: refused' err; tail -n 2 err",
		want: "(?s)^10$.* 290 other ", not: "evil"},
	{name: "a terminal's sequences in a host", hosts: "a.example:80", want: "refused.*control character",
		script: `ZSBX -- ACT dial a.example:80 'GET /x HTTP/1.1\r\nHost: esc\x1b]0;x\x07\r\n\r\n'`, not: "raw "},
	{name: "a terminal's sequences in a server name", hosts: "a.example", script: `ZSBX -- ACT hello 'esc\x1b]0;x\x07\nzsbx: error'`,
		want: "refused.*esc", not: "raw "},
	{name: "a terminal's sequences in a name", hosts: "a.example",
		script: `ZSBX -- ACT dns udp 203.0.113.1 "$(printf 'esc\033]0;x\007.evil')" A; echo end`, want: "end", not: "evil"},
	{name: "uploads by HTTP", hosts: "a.example:80", script: "head -c 3000000 /dev/zero >big; " +
		"ZSBX -- curl -sS -d @big http://a.example/x --next -sS -T big http://a.example/y; ZSBX -- curl -sS -T - http://a.example/z <big",
		want: "^page", seen: "(?s)http POST a.example /x.*http PUT a.example /z"},
	{name: "several requests on a connection", hosts: "a.example:80", want: "^1.*^0.*^0",
		script: "ZSBX -- curl -sS -w '%{num_connects}\\n' http://a.example/x http://a.example/y http://a.example/z"},
	{name: "names by TCP", hosts: "a.example", script: "ZSBX -- " + get, want: "^page",
		opts: internet.Options{Resolv: "options use-vc edns0 trust-ad"}},
	{name: "a name server of this machine", hosts: "a.example", script: "ZSBX -- ACT dns udp 127.0.0.53 a.example A", want: `\\xcb\\x00qP`},
	{name: "a name server with IPv6", hosts: "a.example", script: "ZSBX -- ACT dns udp '[2001:db8::9]' a.example A", want: `\\xcb\\x00qP`},
	{name: "a name server of a link", hosts: "here.example", want: `^203\.0\.113\.80 +STREAM(?s:.*)^b'\\xcb\\x00qP'`, not: "dns ", needs: "/usr/bin/python3",
		script: "echo nameserver fe80::1%eth9 >/etc/resolv.conf; ZSBX -- getent -s dns ahosts here.example; " +
			`ZSBX -- /usr/bin/python3 -c '` + linkScript + `'`,
		opts: internet.Options{Hosts: "203.0.113.80 here.example"}},
	{name: "an address' name", hosts: "a.example", script: "ZSBX -- sh -c 'getent hosts a.example; getent ahosts 203.0.113.80; getent hosts 203.0.113.80'",
		want: `^203\.0\.113\.80 +a\.example`},
	{name: "an open port, read slowly", hosts: "a.example", want: "^8000000 all$",
		script: "ZSBX --bind-tcp 8080 -- " + senderScript + " & " + readerScript + "; wait", needs: "/usr/bin/python3"},
	{name: "an open port, reset", hosts: "a.example", want: "^1000 reset$",
		script: "ZSBX --bind-tcp 8080 -- env RESET=1 " + senderScript + " & " + readerScript + "; wait", needs: "/usr/bin/python3"},
	{name: "an open port, zsbx is killed", hosts: "a.example", want: "^[0-9]+ reset$", needs: "/usr/bin/python3",
		script: "ZSBX --bind-tcp 8080 -- " + senderScript + " & KILL=$! " + readerScript + "; wait"},
	{name: "many connections to an open port", hosts: "a.example", want: "16 connections from outside .*^16 of 40$", needs: "/usr/bin/python3",
		script: "ulimit -n 256; ZSBX --bind-tcp 8080 -- /usr/bin/python3 -c '" + holderScript + "' & /usr/bin/python3 -c '" + crowdScript + "'; wait"},
	{name: "an open port whose server begins again", hosts: "a.example", want: "^all were served$", needs: "/usr/bin/python3",
		script: "ZSBX --bind-tcp 8080 -- /usr/bin/python3 -c '" + againScript + "' & /usr/bin/python3 -c '" + hammerScript + "' $!; wait"},
	{name: "an open port for both kinds of address", hosts: "a.example", want: "^both$", needs: "/usr/bin/python3",
		script: "ZSBX --bind-tcp 8080 -- /usr/bin/python3 -c '" + bothKindsScript + "'"},
	{name: "an open port whose server moves to one address", hosts: "a.example", want: "^moved$", needs: "/usr/bin/python3",
		script: "ZSBX --bind-tcp 8080 -- /usr/bin/python3 -c '" + moveScript + "'"},
	{name: "an open port at this machine's address", hosts: "a.example", want: "^served served$", needs: "/usr/bin/python3",
		script: "ZSBX --bind-tcp 8080 -- /usr/bin/python3 -c '" + ownPortScript + "' & /usr/bin/python3 -c '" + bothPortsScript + "'; wait"},
	{name: "an open port where no server is asked", hosts: "a.example", want: `^\[111, 111, 13\]\n1$`, needs: "/usr/bin/python3",
		script: "ZSBX --bind-tcp 8080 -- /usr/bin/python3 -c '" + idlePortScript + "' 2>err; grep -c refused: err"},
	{name: "a port that is taken outside", hosts: "a.example", want: "^98 0$", needs: "/usr/bin/python3",
		script: "/usr/bin/python3 -c '" + takenScript + "' ZSBX --bind-tcp 8080 -- /usr/bin/python3 -c '" + failedListenScript + "'"},
	{name: "many connections to a name server", hosts: "a.example", want: "^few$", needs: "/usr/bin/python3",
		script: "ulimit -n 1024; ZSBX -- /usr/bin/python3 -c '" + askersScript + "' & p=$!; sleep 2; [ $(ls /proc/$p/fd | wc -l) -lt 400 ] && echo few; wait"},
	{name: "a connection that does not come", hosts: "a.example:7", script: "ZSBX -- /usr/bin/python3 -c '" + deafScript + "'",
		want: "^quick$", needs: "/usr/bin/python3"},
	{name: "no network at first", hosts: "a.example", want: "refused, the next one is tried again: .*no space(?s:.*)^page", needs: "unshare",
		script: "cat >script <<'end'\nZSBX -- sh -c '" + twiceScript + "' & " + limitScript("0", "ready", "none") +
			limitScript("100", "failed", "more") + "wait\nend\nunshare -Ur sh script"},
	{name: "a thread that has ended", hosts: "a.example", script: "ZSBX -- /usr/bin/python3 -c '" + threadScript + "' 2>err; " +
		`grep -c "pid $(cat pid)): the host is allowed for TLS" err`, want: "^1$", needs: "/usr/bin/python3"},
	{name: "raw", hosts: "a.example:7", script: "ZSBX -- ACT dial a.example:7 x", want: `^"x"$`},
	{name: "TLS on a raw port", hosts: "a.example:443/tcp", script: "ZSBX -- " + get, want: "^page"},
}

const stoppedScript = `/usr/bin/python3 -c '
import socket, time
s = socket.create_connection(("a.example", 7))
time.sleep(1)
s.sendall(b"echoed")
print(s.recv(9).decode())'`

const eyesScript = `
import asyncio
async def main():
	r, w = await asyncio.open_connection("eyes.example", 80, happy_eyeballs_delay=0.25)
	w.write(b"GET / HTTP/1.0\r\nHost: eyes.example\r\n\r\n")
	print(await r.read())
asyncio.run(main())`

const uploadScript = `
import socket
s = socket.create_connection(("slow.example", 9001))
s.sendall(bytes(16 << 20))
s.close()
print("sent")`

// holesScript waits for many connections that are never made, and asks another server meanwhile.
const holesScript = `
import os, socket, threading, time, urllib.request
def wait():
	s = socket.socket()
	try: s.connect((socket.gethostbyname("hole.example"), 2222))
	except OSError: pass
for _ in range(300):
	threading.Thread(target=wait, daemon=True).start()
time.sleep(0.5)
socket.create_server(("localhost", 0))
print(urllib.request.urlopen("https://a.example/x").read().decode().split()[0], flush=True)
os._exit(0)`

const holeScript = `
import signal, socket
def interrupt(*_): raise InterruptedError
signal.signal(signal.SIGALRM, interrupt)
to = (socket.gethostbyname("hole.example"), 2222)
signal.setitimer(signal.ITIMER_REAL, 0.3)
try: socket.socket().connect(to)
except InterruptedError: print("interrupted")`

const sendTimeoutScript = `
import socket, struct
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 200000))
print(s.connect_ex((socket.gethostbyname("hole.example"), 2222)))`

const ownScript = `
import os, socket
s = socket.create_server(("", 0))
if os.fork() == 0:
	c = socket.create_connection(("localhost", s.getsockname()[1]))
	c.sendall(b"served")
	os._exit(0)
print(s.accept()[0].recv(9).decode())`

// ownAddressScript finds out which addresses this machine has, as many programs do, and reaches servers there, by
// TCP and UDP, and on localhost. Where none listens a connection is refused.
const ownAddressScript = `
import socket
served = refused = 0
names = []
for family, far, near in (socket.AF_INET, "8.8.8.8", "127.0.0.1"), (socket.AF_INET6, "2001:4860::8888", "::1"):
	s = socket.socket(family, socket.SOCK_DGRAM)
	s.connect((far, 80))
	name = s.getsockname()[0]
	names.append(name)
	any = "0.0.0.0" if family == socket.AF_INET else "::"
	for at, to in (name, name), (any, name), (near, near):
		for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
			l = socket.socket(family, kind)
			l.bind((at, 0))
			port = l.getsockname()[1]
			c = socket.socket(family, kind)
			if kind == socket.SOCK_STREAM: l.listen()
			c.connect((to, port))
			c.sendall(b"x")
			if kind == socket.SOCK_STREAM: l = l.accept()[0]
			served += len(l.recv(9))
	l = socket.socket(family)
	l.bind((name, 0))
	try: socket.create_connection(l.getsockname()[:2])
	except ConnectionRefusedError: refused += 1
print(*names, "served", str(served) + ", refused", refused)`

// machineScript has servers at all addresses, as seen by IPv4 and IPv6, and connects to one that this machine has
// and to one that it has not. Then it connects to a server outside on this machine.
const machineScript = `
import socket
l = socket.create_server(("", 8080))
l6 = socket.create_server(("::", 8080), family=socket.AF_INET6)
errors = [
	socket.socket().connect_ex(("10.38.140.27", 8080)),
	socket.socket(socket.AF_INET6).connect_ex(("2001:db8::80", 8080)),
	socket.socket().connect_ex(("10.38.140.28", 8080)),
	socket.socket().connect_ex(("10.38.140.27", 80)),
]
print(str(errors))`

// sameAddressScript connects to an address that a host outside has, too, with a server of its own there, and without.
// The host has another address, where it is reached.
const sameAddressScript = `
import socket
l = socket.create_server(("192.0.2.1", 80))
print(end="own, " if socket.socket().connect_ex(("192.0.2.1", 80)) == 0 else "outside, ")
l.close()
print(socket.socket().connect_ex((socket.gethostbyname("many.example"), 80)))`

// relayPortScript has servers at other addresses with the number of a port on which the relay listens, and connects
// to the relay itself in all ways.
const relayPortScript = `
import socket
relay = [socket.create_connection((a, 7)) for a in ("203.0.113.80", "2001:db8::80")]
four, six = [s.getpeername()[1] for s in relay]
served = []
for port in four, six:
	l = socket.create_server(("127.0.0.2", port))
	socket.create_connection(("127.0.0.2", port)).sendall(b"served")
	served.append(l.accept()[0].recv(9).decode())
	l.close()
refused = 0
for family, source, to in (
	(socket.AF_INET, None, ("127.0.0.1", four)),
	(socket.AF_INET, None, ("0.0.0.0", four)),
	(socket.AF_INET, ("127.0.0.3", 0), ("127.0.0.1", four)),
	(socket.AF_INET6, None, ("::ffff:127.0.0.1", four)),
	(socket.AF_INET6, None, ("::ffff:0.0.0.0", four)),
	(socket.AF_INET6, ("::ffff:127.0.0.1", 0), ("::", four)),
	(socket.AF_INET6, ("::ffff:127.0.0.3", 0), ("::", four)),
	(socket.AF_INET6, None, ("::1", six)),
	(socket.AF_INET6, None, ("::1", six, 0, 1)),
	(socket.AF_INET6, None, ("::", six)),
):
	s = socket.socket(family)
	if source: s.bind(source)
	try: s.connect(to)
	except ConnectionRefusedError: refused += 1
for s in relay:
	s.sendall(b"x")
	if s.recv(1) != b"x": refused = "nothing comes back"
print(" ".join(served) + ", refused", refused)`

// linkScript asks a name server of a device that the session's network does not have.
const linkScript = `
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.settimeout(30)
s.connect(("fe80::1", 53, 0, 7))
s.send(b"\0\7\1\0\0\1\0\0\0\0\0\0\4here\7example\0\0\1\0\1")
print(s.recv(512)[-4:])`

// threadScript has a thread that connects and ends, and then sends something else than TLS. It notes its process id,
// or nothing if the kernel does not tell whose a thread is (PIDFD_GET_INFO, Linux 6.13).
const threadScript = `
import fcntl, os, socket, threading
try:
	fcntl.ioctl(os.pidfd_open(os.getpid()), 0xc040ff0b, (1).to_bytes(64, "little"))
	pid = str(os.getpid())
except OSError: pid = "[0-9]*"
open("pid", "w").write(pid)
s = socket.socket()
to = (socket.gethostbyname("a.example"), 443)
s.setblocking(False)
t = threading.Thread(target=s.connect_ex, args=(to,))
t.start()
t.join()
s.setblocking(True)
s.sendall(b"SSH-2.0-x\\r\\n")
s.recv(9)`

// senderScript is a server that sends more to one client than the kernel keeps, and ends. With RESET it
// sends little, and resets the connection.
const senderScript = `/usr/bin/python3 -c '
import os, socket, struct, time
c = socket.create_server(("", 8080)).accept()[0]
if "RESET" in os.environ:
	c.sendall(bytes(1000))
	time.sleep(1)
	c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
else: c.sendall(bytes(8000000))'`

// readerScript is a slow client of it, which kills a process, if there is KILL.
const readerScript = `/usr/bin/python3 -c '
import os, socket, time
for _ in range(200):
	try: s = socket.create_connection(("127.0.0.1", 8080)); break
	except OSError: time.sleep(0.05)
n = 0
end = "all"
s.recv(1, socket.MSG_PEEK)
time.sleep(0.5)
if "KILL" in os.environ: os.kill(int(os.environ["KILL"]), 9)
try:
	while b := s.recv(65536):
		n += len(b)
		time.sleep(0.01)
except ConnectionResetError: end = "reset"
print(n, end)'`

// holderScript is a server that keeps its connections.
const holderScript = `
import socket
l = socket.create_server(("", 8080))
l.settimeout(30)
all = []
try:
	while len(all) < 40:
		all.append(l.accept()[0])
		all[-1].sendall(b"x")
		l.settimeout(3)
except TimeoutError: pass`

// crowdScript connects to it from outside, and counts the connections that are served.
const crowdScript = `
import socket, time
def connect():
	for _ in range(200):
		try: return socket.create_connection(("127.0.0.1", 8080), 10)
		except ConnectionRefusedError: time.sleep(0.05)
		except ConnectionResetError: return None
all = [connect() for _ in range(40)]
n = 0
for s in filter(None, all):
	try: n += len(s.recv(1))
	except ConnectionResetError: pass
print(n, "of 40")`

// deafScript has sockets that drop what the relay answers (IP_MINTTL, ip(7)), and connects another one
// meanwhile.
const deafScript = `
import os, socket, threading, time
to = (socket.gethostbyname("a.example"), 7)
def deaf():
	while True:
		s = socket.socket()
		s.setblocking(False)
		s.setsockopt(socket.IPPROTO_IP, 21, 255)
		s.connect_ex(to)
for _ in range(8): threading.Thread(target=deaf, daemon=True).start()
time.sleep(0.5)
began = time.monotonic()
for _ in range(5):
	s = socket.create_connection(to)
	s.sendall(b"x")
	s.recv(1)
took = time.monotonic() - began
print("quick" if took < 1.5 else took, flush=True)
os._exit(0)`

// twiceScript asks before there can be a network, and once more when there can be one.
const twiceScript = "touch ready; until test -e none; do sleep 0.1; done; " + get +
	"; touch failed; until test -e more; do sleep 0.1; done; " + get

// limitScript waits for one file, then sets how many network namespaces there may be, and makes another file.
func limitScript(most, wait, made string) string {
	return "until test -e " + wait + "; do sleep 0.1; done; echo " + most + " >/proc/sys/user/max_net_namespaces; touch " + made + "; "
}

// againScript is a server that ends and begins again all the time, and is asked each time.
const againScript = `
import socket, time
for n in range(200):
	l = socket.create_server(("", 8080))
	l.settimeout(2)
	try: c = l.accept()[0]
	except TimeoutError: break
	l.close()
	c.close()
print("all were served" if n == 199 else n)`

// hammerScript connects to it from outside until a process has ended.
const hammerScript = `
import os, socket, sys
while os.path.exists("/proc/" + sys.argv[1] + "/exe"):
	try: socket.create_connection(("127.0.0.1", 8080), 1).close()
	except OSError: pass`

// bothKindsScript has a server for IPv4 and one for IPv6 only. Then one has both.
const bothKindsScript = `
import socket
four = socket.create_server(("", 8080))
six = socket.create_server(("::", 8080), family=socket.AF_INET6)
four.close()
six.close()
socket.create_server(("::", 8080), family=socket.AF_INET6, dualstack_ipv6=True)
print("both")`

// ownPortScript has servers at the addresses of the session's network, one after the other. bothPortsScript is a
// client of both from outside.
const ownPortScript = `
import socket
for family, name in (socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"):
	l = socket.create_server((name, 8080), family=family)
	l.settimeout(10)
	l.accept()[0].sendall(b"served")
	l.close()`

const bothPortsScript = `
import socket, time
def connect(to):
	for _ in range(200):
		try: return socket.create_connection((to, 8080))
		except OSError: time.sleep(0.05)
print(*[connect(to).recv(9).decode() for to in ("127.0.0.1", "::1")])`

// idlePortScript connects to a port that is open for a server of its own: at another address, and once the server
// is gone. Then it connects to a server outside.
const idlePortScript = `
import socket
l = socket.create_server(("127.0.0.1", 8080))
errors = [socket.socket(socket.AF_INET6).connect_ex(("::1", 8080))]
l.close()
errors.append(socket.socket().connect_ex(("127.0.0.1", 8080)))
errors.append(socket.socket().connect_ex(("127.0.0.1", 7)))
print(str(errors))`

const moveScript = `
import socket
socket.create_server(("", 8080)).close()
socket.create_server(("127.0.0.1", 8080))
print("moved")`

// takenScript listens outside while another program runs.
const takenScript = `
import socket, subprocess, sys
l = socket.create_server(("", 8080))
subprocess.run(sys.argv[1:])`

const failedListenScript = `
import socket
s = socket.socket()
s.bind(("", 8080))
try: s.listen()
except OSError as e: print(e.errno, s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))`

const askersScript = `
import socket, time
all = []
for _ in range(800):
	s = socket.socket()
	s.setblocking(False)
	s.connect_ex(("8.8.8.8", 53))
	all.append(s)
time.sleep(3)`

// line returns a script with the words that stand for zsbx and an act replaced.
func (b *bed) line(script, hosts string) string {
	zsbx := strings.Join(b.zsbx(), " ")
	for h := range strings.FieldsSeq(hosts) {
		switch h[0] {
		case '!':
			zsbx += " --deny-host '" + h[1:] + "'"
		case '~':
			zsbx += " --allow-private-host '" + h[1:] + "'"
		default:
			zsbx += " --allow-host '" + h + "'"
		}
	}
	script = strings.ReplaceAll(script, "ACT ", b.act)
	return strings.ReplaceAll(script, "ZSBX ", zsbx+" ")
}

// TestHostsWays: a network by name works, whatever else is asked of a run and however names are found.
func TestHostsWays(t *testing.T) {
	t.Parallel()
	needBed(t)
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			w.try(t, newBed(t))
		})
	}
}

// try does the run.
func (w *way) try(t *testing.T, b *bed) {
	t.Helper()
	testkit.NeedProgram(t, "curl")
	if w.needs != "" {
		testkit.NeedProgram(t, w.needs)
	}
	w.opts.Dir = b.Dir
	b.Options = w.opts
	b.env = append(b.env, w.env...)
	status := b.run(t, "sh", "-c", b.line(w.script, w.hosts))
	if !regexp.MustCompile("(?ms)"+w.want).MatchString(b.out) || w.seen != "" && !regexp.MustCompile(w.seen).MatchString(b.log) ||
		w.not != "" && regexp.MustCompile(w.not).MatchString(b.log) || strings.ContainsAny(b.out, "\x1b\x07") || strings.Contains(b.out, "secret") {
		t.Errorf("exit status %d, it prints\n%s\n%s", status, b.out, b.log)
	}
}
