package rule_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/egress/rule"
)

// TestParse: what a rule means, and its shortest form.
func TestParse(t *testing.T) {
	for _, c := range []struct{ text, short, kind string }{
		{"packages.example", "packages.example", "tls"},
		{"Packages.EXAMPLE.:443/TLS", "packages.example", "tls"},
		{"mirror.example:80", "mirror.example:80", "http"},
		{"mirror.example:80/tcp", "mirror.example:80/tcp", "tcp"},
		{"code.example:22", "code.example:22", "tcp"},
		{"ssh.code.example/tcp", "ssh.code.example/tcp", "tcp"},
		{"app.example:8443/tls", "app.example:8443/tls", "tls"},
		{"*.files.example", "*.files.example", "tls"},
		{"*", "*", "tcp"},
		{"*:80", "*:80", "tcp"},
		{"LocalHost:5432", "localhost:5432", "tcp"},
		{"10.1.2.0/24:5432", "10.1.2.0/24:5432", "tcp"},
		{"10.1.2.3/32:443/tcp", "10.1.2.3:443", "tcp"},
		{"[2001:DB8::1]:22", "[2001:db8::1]:22", "tcp"},
		{"[2001:db8::/32]:22", "[2001:db8::/32]:22", "tcp"},
		{"_a.b-c.x9", "_a.b-c.x9", "tls"},
	} {
		r, err := rule.Parse(c.text, rule.Marks{})
		if err != nil || r.String() != c.short || string(r.Kind) != c.kind {
			t.Errorf("%s: %s, %s, %v", c.text, r.String(), r.Kind, err)
		}
	}
}

// TestParseBad: each rule that is refused, the column from which on it is wrong, and what to write.
func TestParseBad(t *testing.T) {
	long := strings.Repeat("a", 64)
	for _, c := range []struct {
		text   string
		column int
		part   string
		hint   string
	}{
		{"", 1, "empty", ""},
		{"*.com", 1, "wildcard", "*.example.com"},
		{"a.*.example", 3, "wildcard stands alone", ""},
		{"*a.example", 1, "wildcard stands alone", ""},
		{"https://packages.example", 1, "scheme", "packages.example"},
		{"https://packages.example:8443/a/b", 1, "scheme", "packages.example:8443"},
		{"packages.example/v1", 17, "no path", "packages.example"},
		{"packages.example:443/udp", 21, "no kind", "packages.example:443"},
		{"packages.example/", 17, "no kind", "packages.example"},
		{"me@packages.example", 3, "user", "packages.example"},
		{"packages.example?a=b", 17, "query", "packages.example"},
		{"packages.example#a", 17, "fragment", "packages.example"},
		{"packages.example:0", 18, "no port", ""},
		{"packages.example:65536", 18, "no port", ""},
		{"packages.example:", 18, "no port", ""},
		{"packages.example:https", 18, "no port", ""},
		{"packages.example:0443", 18, "no port", ""},
		{"packages.example:22:23", 1, "brackets", ""},
		{"10.0.0.1", 9, "needs a port", "10.0.0.1:443"},
		{"10.0.0.0/8", 11, "needs a port", "10.0.0.0/8:443"},
		{"10.0.0.1/8:443", 1, "after its prefix", "10.0.0.0/8"},
		{"10.0.0.1:443/tls", 13, "directly", "10.0.0.1:443"},
		{"10.0.0:443", 1, "no address", ""},
		{"010.0.0.1:443", 1, "no address", ""},
		{"[10.0.0.1]:443", 1, "brackets", ""},
		{"2001:db8::1", 1, "brackets", ""},
		{"[::ffff:10.0.0.1]:22", 1, "IPv4", "10.0.0.1"},
		{"[fe80::1%eth0]:22", 1, "no address", ""},
		{"[2001:db8::1", 1, `"]"`, ""},
		{"[2001:db8::1]22", 14, "not expected", ""},
		{"bücher.example", 2, "xn--", ""},
		{"a b.example", 2, "space", ""},
		{"a\x1b[31m.example", 2, `"a\x1b[31m.example"`, ""},
		{long + ".example", 1, "64 bytes", ""},
		{strings.Repeat("abcdefg.", 32) + "example", 1, "253", ""},
		{"a..example", 3, "empty label", ""},
		{".example.org", 1, "empty label", ""},
		{"-a.example", 1, "hyphen", ""},
		{"a!b.example", 2, "no character", ""},
		{"npm", 1, "no groups", "zsbx learn"},
		{":443", 1, "no host", ""},
	} {
		r, err := rule.Parse(c.text, rule.Marks{})
		var e *rule.Error
		if !errors.As(err, &e) {
			t.Errorf("%q is accepted: %v", c.text, r)
			continue
		}
		if e.Column != c.column || !strings.Contains(e.Msg, c.part) || e.Hint != c.hint {
			t.Errorf("%q: column %d: %s; hint %q", c.text, e.Column, e.Msg, e.Hint)
		}
	}
}

// TestMarks: marks that would mean nothing are refused, and so is a kind in a denial.
func TestMarks(t *testing.T) {
	private := rule.Marks{Private: true}
	ech := rule.Marks{ECH: true}
	for _, c := range []struct {
		text  string
		marks rule.Marks
		ok    bool
	}{
		{"registry.corp.example", private, true},
		{"*.corp.example:22", private, true},
		{"*", private, false},
		{"10.0.0.1:22", private, false},
		{"localhost:22", private, false},
		{"app.example", ech, true},
		{"app.example:80", ech, false},
		{"*", ech, false},
	} {
		_, err := rule.Parse(c.text, c.marks)
		if (err == nil) != c.ok {
			t.Errorf("%s %v: %v", c.text, c.marks, err)
		}
	}
	d, err := rule.ParseDenial("gist.code.example")
	if err != nil || d.Port != 0 || d.String() != "gist.code.example" {
		t.Errorf("%v, %v", d, err)
	}
	if _, err := rule.ParseDenial("gist.code.example/tls"); err == nil {
		t.Error("a denial has a kind")
	}
}

// TestWarning: a wildcard above a name under which anybody can have one.
func TestWarning(t *testing.T) {
	for text, warned := range map[string]bool{"*.co.uk": true, "*.github.io": true, "*.me.github.io": false, "me.github.io": false} {
		r := parse(t, text)
		if (rule.Warning(&r) != "") != warned {
			t.Errorf("%s: %q", text, rule.Warning(&r))
		}
	}
}

// parse reads a rule; "private " and "ech " before it are its marks.
func parse(t testing.TB, text string) rule.Rule {
	t.Helper()
	text, private := strings.CutPrefix(text, "private ")
	text, ech := strings.CutPrefix(text, "ech ")
	r, err := rule.Parse(text, rule.Marks{Private: private, ECH: ech})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// FuzzRule: what is accepted can be written and read again, what is not says where it is wrong.
func FuzzRule(f *testing.F) {
	for _, s := range []string{"a.example:22/tcp", "*.a.example", "*", "localhost:1", "10.0.0.0/8:1", "[2001:db8::/32]:1", "a@b", "::", "*.*", "[", "1.2.3.4/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := rule.ParseDenial(text)
		if err == nil {
			again, err := rule.ParseDenial(d.String())
			if err != nil || again != d {
				t.Fatalf("the denial %q becomes %q: %v", text, d.String(), err)
			}
		}
		r, err := rule.Parse(text, rule.Marks{})
		if err == nil {
			again, err := rule.Parse(r.String(), rule.Marks{})
			if err != nil || again != r || len(r.Name) > 253 {
				t.Fatalf("%q becomes %q: %v", text, r.String(), err)
			}
			if !rule.Covers(&r, &r) || !rule.NewSet([]rule.Rule{r}, nil).Covers(&r) {
				t.Fatalf("%q does not cover itself", text)
			}
			return
		}
		var e *rule.Error
		if !errors.As(err, &e) || e.Column < 1 || e.Column > len(text)+1 || strings.Trim(fmt.Sprintf("%q", e.Msg), `"`) == "" {
			t.Fatalf("%q: %#v", text, err)
		}
		for _, c := range e.Msg {
			if c < ' ' || c > '~' {
				t.Fatalf("%q: the message has %q", text, c)
			}
		}
	})
}
