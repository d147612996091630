package cmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/testkit"
)

// client is an ordinary program that asks a server.
type client struct {
	name   string
	needs  string // the program
	script string
	want   string // a pattern of what it prints, if the server has answered
}

// bundle is the file with the certificate that programs must trust, for those who have another one.
const bundle = "/etc/ssl/certs/ca-certificates.crt"

// clients are asked for a.example only, but for ssh.
var clients = []client{
	{"curl", "curl", "curl -sS -w '%{http_version}' https://a.example/x", `^page of a\.example\n2$`},
	{"curl HTTP/1", "curl", "curl -sS --http1.1 https://a.example/x", "^page"},
	{"curl port 80", "curl", "curl -sS http://a.example/x", "^page"},
	{"curl IPv6", "curl", "curl -6 -sS https://a.example/x", "^page"},
	{"curl IPv4", "curl", "curl -4 -sS https://a.example/x", "^page"},
	{"curl upper case", "curl", "curl -sSk https://A.EXAMPLE/x", "(?i)^page of a.example"},
	{"curl dot", "curl", "curl -sSk https://a.example./x", `^page of a\.example`},
	{"wget", "wget", "wget -q --tries=1 -O - https://a.example/x", "^page"},
	{"busybox", "busybox", "busybox wget -q -O - http://a.example/x", "^page"},
	{"git https", "git", "git ls-remote https://a.example/r.git", "refs/heads/main"},
	{"git ssh", "ssh", "GIT_SSH_COMMAND='ssh -v -o BatchMode=yes' git ls-remote ssh://git@ssh.example/r.git", "remote software version Testbed"},
	{"ssh", "ssh", "ssh -v -o BatchMode=yes git@ssh.example", "remote software version Testbed"},
	{"pip", "pip", "PIP_CERT=" + bundle + " PIP_DISABLE_PIP_VERSION_CHECK=1 /usr/bin/python3 -m pip --isolated index versions pkg" +
		" --retries 0 --cert " + bundle + " --index-url https://a.example/simple", `pkg \(1\.0\)`},
	{"urllib", "/usr/bin/python3", `/usr/bin/python3 -c 'import urllib.request as u; print(u.urlopen("https://a.example/x").read())'`, "page of"},
	{"asyncio", "/usr/bin/python3", "/usr/bin/python3 -c '" + asyncioClient + "'", "page of"},
	{"getaddrinfo", "/usr/bin/python3", "/usr/bin/python3 -c '" + addrconfigClient + "'", `^203\.0\.113\.80 2001:db8::80$`},
	{"sendto", "/usr/bin/python3", "/usr/bin/python3 -c '" + sendtoClient + "'", "^answered$"},
	{"node fetch", "node", node(`fetch("https://a.example/x").then(r => r.text()).then(console.log)`), "^page"},
	{"node https", "node", node(`require("https").get("https://a.example/x", r => r.pipe(process.stdout))`), "^page"},
	{"node c-ares", "node", node(`require("dns").resolve4("a.example", (e, a) => console.log(a))`), `203\.0\.113\.80`},
	{"node dgram", "node", node(dgramClient), "^echoed here$"},
	{"npm", "npm", "NODE_EXTRA_CA_CERTS=" + bundle + " npm view pkg version --fetch-retries=0 --registry https://a.example/npm/", "^1.0.0"},
	{"openssl", "openssl", "openssl s_client -connect a.example:443 -servername a.example </dev/null 2>&1", "Verify return code: 0"},
	{"perl", "perl", `perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new("a.example:80") or die $@; ` +
		`print $s "GET / HTTP/1.0\r\nHost: a.example\r\n\r\n"; print <$s>'`, "page of"},
	{"Go", "true", "ACT get https://a.example/x", "page of a.example"},
	{"go mod", "go", "GOPROXY=https://a.example/go GONOSUMDB=* GOFLAGS=-mod=mod go list -m -versions m.example/m", "v1.0.0"},
	{"apt", "/usr/lib/apt/apt-helper", "/usr/lib/apt/apt-helper -o APT::Sandbox::User= -o Acquire::Retries=0 " +
		"download-file https://a.example/x got && cat got", "page of"},
	{"cargo", "cargo", "cd crate && cargo generate-lockfile && grep checksum Cargo.lock", "0000"},
	{"java", "java", "java J.java", "(?s)page of.*page of"},
}

// node returns a command line for node.
func node(program string) string {
	return "NODE_EXTRA_CA_CERTS=" + bundle + " node -e '" + program + "'"
}

const asyncioClient = `
import asyncio, ssl
async def main():
	r, w = await asyncio.open_connection("a.example", 443, ssl=ssl.create_default_context())
	w.write(b"GET / HTTP/1.0\r\nHost: a.example\r\n\r\n")
	print(await r.read())
asyncio.run(main())`

// addrconfigClient asks for addresses of the kinds that this machine has, as browsers do.
const addrconfigClient = `
from socket import *
def first(family):
	return getaddrinfo("a.example", 443, family, SOCK_STREAM, 0, AI_ADDRCONFIG)[0][4][0]
print(first(AF_INET), first(AF_INET6))`

// sendtoClient asks as musl does: no connected socket, both questions at once, and answers count
// only from the server's address.
const sendtoClient = `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 0))
s.settimeout(3)
server = ("203.0.113.1", 53)
for kind in 1, 28:
	q = bytes([0, kind, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]) + b"\1a\7example\0" + bytes([0, kind, 0, 1])
	s.sendto(q, server)
got = [s.recvfrom(512) for _ in range(2)]
good = all(a == server for _, a in got) and any(bytes([203, 0, 113, 80]) in b for b, _ in got)
print("answered" if good else got)`

// dgramClient sends a datagram to itself, after it asked for the server.
const dgramClient = `
const s = require("dgram").createSocket("udp4")
s.on("message", m => { console.log("" + m); process.exit() })
s.bind(0, "127.0.0.1", () => fetch("https://a.example/x").then(() => s.send("echoed here", s.address().port, "127.0.0.1")))`

// files makes what some clients need.
func (b *bed) files(t *testing.T) {
	t.Helper()
	for _, d := range []string{"/crate/src", "/home/.cargo"} {
		if err := os.MkdirAll(b.Dir+d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"J.java":                  javaClient,
		"crate/src/lib.rs":        "",
		"crate/Cargo.toml":        "[package]\nname = \"c\"\nversion = \"0.1.0\"\n[dependencies]\npkg = \"1\"\n",
		"home/.cargo/config.toml": cargoConfig,
	} {
		if err := os.WriteFile(b.Dir+"/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cargo, err := exec.LookPath("cargo")
	if err != nil {
		return
	}
	b.flags = append(b.flags, "--rox", filepath.Dir(cargo))
	rustup := filepath.Join(filepath.Dir(cargo), "../../.rustup")
	if _, err := os.Stat(rustup); err == nil {
		b.env = append(b.env, "RUSTUP_HOME="+rustup)
		b.flags = append(b.flags, "--rox", rustup)
	}
}

const cargoConfig = `
[source.crates-io]
replace-with = "bed"
[source.bed]
registry = "sparse+https://a.example/cargo/"
[http]
cainfo = "` + bundle + `"
[net]
retry = 0
`

// javaClient asks with both clients that Java has. It trusts anything: its own list is no text.
const javaClient = `
import java.net.*;
import java.net.http.*;
import java.security.cert.X509Certificate;
import javax.net.ssl.*;
public class J {
	public static void main(String[] a) throws Exception {
		var any = new X509ExtendedTrustManager() {
			public void checkClientTrusted(X509Certificate[] c, String s) {}
			public void checkServerTrusted(X509Certificate[] c, String s) {}
			public void checkClientTrusted(X509Certificate[] c, String s, Socket k) {}
			public void checkServerTrusted(X509Certificate[] c, String s, Socket k) {}
			public void checkClientTrusted(X509Certificate[] c, String s, SSLEngine e) {}
			public void checkServerTrusted(X509Certificate[] c, String s, SSLEngine e) {}
			public X509Certificate[] getAcceptedIssuers() { return new X509Certificate[0]; }
		};
		var tls = SSLContext.getInstance("TLS");
		tls.init(null, new TrustManager[] { any }, null);
		HttpsURLConnection.setDefaultSSLSocketFactory(tls.getSocketFactory());
		System.out.println(new String(new URL("https://a.example/x").openStream().readAllBytes()));
		var asked = HttpRequest.newBuilder(URI.create("https://a.example/x")).build();
		var client = HttpClient.newBuilder().sslContext(tls).build();
		System.out.println(client.send(asked, HttpResponse.BodyHandlers.ofString()).body());
	}
}`

// TestHostsClients: ordinary programs reach a server that is allowed by its name, without a variable
// that says how, and not one that isn't.
func TestHostsClients(t *testing.T) {
	t.Parallel()
	needBed(t)
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := c.bed(t)
			b.run(t, "sh", "-c", c.line(b))
			if !c.answered(b) {
				t.Fatalf("control: without zsbx it prints\n%s\n%s", b.out, b.log)
			}
			c.try(t, b, true)
		})
	}
}

// bed returns a bed with what the program needs.
func (c *client) bed(t *testing.T) *bed {
	t.Helper()
	testkit.NeedProgram(t, c.needs)
	b := newBed(t)
	b.files(t)
	return b
}

// line returns the script.
func (c *client) line(b *bed) string { return strings.Replace(c.script, "ACT ", b.act, 1) }

// answered reports whether the server has answered.
func (c *client) answered(b *bed) bool { return regexp.MustCompile(c.want).MatchString(b.out) }

// try runs the program where its host is allowed, and where it is not.
func (c *client) try(t *testing.T, b *bed, works bool) {
	t.Helper()
	b.run(t, b.allowing(c.line(b), "a.example", "a.example:80", "ssh.example:22")...)
	if c.answered(b) != works {
		t.Errorf("allowed: it prints\n%s\n%s", b.out, b.log)
	}
	b.run(t, b.allowing(c.line(b), "b.example")...)
	if c.answered(b) || strings.Contains(b.log, "a.example") || strings.Contains(b.log, "tcp ") {
		t.Errorf("not allowed: it prints\n%s\n%s", b.out, b.log)
	}
}
