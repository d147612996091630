package cmd

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/why"
)

// explained is what --explain-file has of a refusal.
type explained struct {
	Path   string
	Errno  string
	By     string
	Cause  bool
	Proved bool
	Hint   string
	Reason string
	Toml   json.RawMessage
}

// newBedWith is newBed, and skips a test if a program is missing.
func newBedWith(t *testing.T, programs ...string) *bed {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip(err)
		}
	}
	return newBed(t)
}

// explains runs a shell script with a network by name and returns the report of what it was refused.
func (b *bed) explains(t *testing.T, script string, hosts ...string) (r struct {
	Refusals []explained
	Hosts    []why.Host
	Last     *why.Failure `json:"last_failure"`
	Ordinary int
}) {
	t.Helper()
	file := filepath.Join(b.Dir, "explained")
	flags := b.flags
	b.flags = append(slices.Clone(flags), "--explain-file", file)
	defer func() { b.flags = flags }()
	b.run(t, b.allowing(script, hosts...)...)
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err, b.out)
	}
	return r
}

// TestWhyHosts: a refusal of a host has the reason that was said when it happened, and what to type. It does
// not matter whether it came at connect or from the relay after it, or whether the socket blocks.
func TestWhyHosts(t *testing.T) {
	b := newBedWith(t, "curl", "perl")
	const perl = `perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new("%") or exit 1; print $s "GET / HTTP/1.0\r\nHost: #\r\n\r\n"; exit(<$s> ? 0 : 1)'`
	blocks := func(at, host string) string { return strings.NewReplacer("%", at, "#", host).Replace(perl) }
	for _, c := range []struct {
		name, script string
		hosts        []string
		want         why.Host
		path         string
		errno        string
	}{
		{"host", "curl -sS https://evil.example/", []string{"a.example"},
			why.Host{Host: "evil.example", Port: 443, Reason: "host", Hint: "--allow-host evil.example"}, "evil.example:443", "EACCES"},
		{"blocks", blocks("evil.example:80", "evil.example"), []string{"a.example"},
			why.Host{Host: "evil.example", Port: 80, Reason: "host", Hint: "--allow-host evil.example:80"}, "evil.example:80", "EACCES"},
		{"port", "curl -sS http://a.example/", []string{"a.example"},
			why.Host{Host: "a.example", Port: 80, Reason: "port", Hint: "--allow-host a.example:80"}, "a.example:80", "EACCES"},
		{"private", "curl -sS https://corp.example/", []string{"corp.example"},
			why.Host{Host: "corp.example", Port: 443, Reason: "private", Hint: "--allow-private-host corp.example"}, "corp.example:443", "EACCES"},
		{"numeric", "curl -sS http://203.0.113.80/", []string{"a.example"},
			why.Host{Host: "203.0.113.80", Port: 80, Reason: "numeric", Hint: "--allow-host 203.0.113.80:80"}, "203.0.113.80:80", "EACCES"},
		{"server name", "curl -sSk --connect-to ::a.example:443 https://evil.example/", []string{"a.example"},
			why.Host{Host: "a.example", Port: 443, Reason: "sni"}, "a.example:443", "ECONNRESET"},
		{"blocks after", blocks("a.example:80", "b.example"), []string{"a.example:80"},
			why.Host{Host: "a.example", Port: 80, Reason: "http-host"}, "a.example:80", "ECONNRESET"},
		{"kind", "curl -sS telnet://a.example:443 </etc/passwd", []string{"a.example"},
			why.Host{Host: "a.example", Port: 443, Reason: "not-tls", Hint: "--allow-host a.example/tcp"}, "a.example:443", "ECONNRESET"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := *b
			b.run(t, "sh", "-c", c.script)
			if strings.Contains(b.out, "resolve") {
				t.Fatalf("control: %s", b.out)
			}
			got := b.explains(t, c.script, c.hosts...)
			i := slices.IndexFunc(got.Refusals, func(e explained) bool { return e.Path == c.path })
			if i < 0 || len(got.Hosts) != 1 {
				t.Fatalf("%+v: %s", got, b.out)
			}
			e := got.Refusals[i]
			if e.Errno != c.errno || e.By != "hosts" || !e.Proved || !e.Cause || e.Hint != c.want.Hint || (e.Toml == nil) != (e.Hint == "") {
				t.Errorf("%+v", e)
			}
			h := got.Hosts[0]
			said := "refused: " + c.path + " (" + h.Program + ", pid "
			if !strings.Contains(b.out, said) || !strings.Contains(b.out, h.Text) || !strings.HasPrefix(e.Reason, h.Text) {
				t.Errorf("%+v, but this was said: %s", e, b.out)
			}
			if h.Refused == 0 {
				t.Errorf("%+v", h)
			}
			h.Text = ""
			h.Program = ""
			h.Refused = 0
			if h != c.want {
				t.Errorf("%+v, want %+v", h, c.want)
			}
			if e.Hint == "" {
				return
			}
			b.flags = strings.Fields(e.Hint)
			b.explains(t, c.script, c.hosts...)
			if strings.Contains(b.out, "refused:") {
				t.Errorf("with %s: %s", e.Hint, b.out)
			}
		})
	}
}

// TestWhyReached: a host that is reached is not listed, nor is one that is allowed and does not answer: that
// would fail without zsbx, too, and is said so.
func TestWhyReached(t *testing.T) {
	b := newBedWith(t, "curl", "perl")
	got := b.explains(t, "curl -sSk https://a.example/ && exit 3", "a.example")
	if len(got.Refusals) != 0 || len(got.Hosts) != 0 || !strings.Contains(b.log, "http GET a.example") {
		t.Errorf("%+v: %s", got, b.out)
	}
	got = b.explains(t, `perl -MIO::Socket::INET -e 'IO::Socket::INET->new("a.example:81") or exit 1'`, "a.example:81")
	if len(got.Refusals) != 0 || len(got.Hosts) != 0 || got.Ordinary != 1 || got.Last == nil || got.Last.Path != "a.example:81" ||
		got.Last.Errno != "ECONNREFUSED" {
		t.Errorf("%+v %+v: %s", got, got.Last, b.out)
	}
}

// TestWhyLookup: a name that does not exist because it is refused is in the report, although nothing was
// connected to.
func TestWhyLookup(t *testing.T) {
	b := newBedWith(t, "curl", "perl")
	err := os.WriteFile(filepath.Join(b.Dir, "p.toml"), []byte("[net]\nhosts = [\"a.example\"]\ndeny = \"nxdomain\"\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	b.flags = []string{"-p", "p.toml"}
	got := b.explains(t, "curl -sS https://evil.example/")
	if len(got.Hosts) != 1 || len(got.Refusals) != 1 || got.Refusals[0].Path != "evil.example" || got.Refusals[0].Errno != "EAI_NONAME" ||
		got.Hosts[0].Reason != "host" || got.Hosts[0].Port != 0 || !got.Refusals[0].Cause {
		t.Errorf("%+v: %s", got, b.out)
	}
}

// TestWhyManyWait: connections that wait for their dial at the same time each have their own answer.
func TestWhyManyWait(t *testing.T) {
	b := newBedWith(t, "curl", "perl")
	const perl = `for $n (1..20) { fork or do { $s = IO::Socket::INET->new("a.example:".(8000+$n)); exit !$s } } 1 while wait != -1; exit 1`
	var hosts []string
	for n := 8001; n <= 8010; n++ {
		hosts = append(hosts, fmt.Sprint("a.example:", n)) // nobody listens there
	}
	got := b.explains(t, "perl -MIO::Socket::INET -e '"+perl+"'", hosts...)
	if len(got.Hosts) != 10 || len(got.Refusals) != 10 || got.Ordinary != 10 {
		t.Errorf("%+v", got)
	}
	for _, h := range got.Hosts {
		if h.Reason != "port" || h.Refused != 1 || h.Port <= 8010 {
			t.Errorf("%+v", h)
		}
	}
}

// TestAfterRefusedHost: what is said of a host when it is refused is not said once more at the end, in
// fewer words. Where nothing was said, a line at the end names the network.
func TestAfterRefusedHost(t *testing.T) {
	b := newBedWith(t, "curl", "perl")
	const less = "only the listed hosts could be reached"
	b.run(t, b.allowing("curl -sS https://evil.example/", "a.example")...)
	if strings.Count(b.out, "zsbx: refused: ") != 1 || strings.Contains(b.out, less) {
		t.Error(b.out)
	}
	b.run(t, b.allowing("curl -sS https://localhost:2/", "a.example")...)
	if strings.Contains(b.out, "zsbx: refused: ") || !strings.Contains(b.out, less) {
		t.Error(b.out)
	}
}
