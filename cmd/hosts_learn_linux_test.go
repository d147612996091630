package cmd

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLearnHosts: learn lets a command reach what it wants and proposes exactly that. With what it prints
// the same command does the same; without it nothing is reached.
func TestLearnHosts(t *testing.T) {
	b := newBedWith(t, "curl", "perl")
	const server = `perl -MIO::Socket::INET -e 'alarm 5; $l = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1:18127", ReuseAddr => 1); ` +
		`$s = $l->accept; print $s "outside\n"' & `
	const asks = `perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new("%") or exit 1; $l = <$s>; exit !length $l'`
	connects := func(to string) string { return strings.Replace(asks, "%", to, 1) }
	for _, c := range []struct {
		name, script string
		outside      string // runs beside zsbx
		want         []string
		comments     string
	}{
		{name: "TLS", script: "curl -sSk https://a.example/", want: []string{`"a.example"`}},
		{name: "HTTP", script: "curl -sS http://a.example/", want: []string{`"a.example:80"`}},
		{name: "the server speaks first", script: connects("ssh.example:22"), want: []string{`"ssh.example:22"`}},
		{name: "not TLS", script: `perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new("a.example:443"); print $s "hello\n"'`, want: []string{`"a.example/tcp"`}},
		{name: "HTTP at another port", script: "curl -sSk https://a.example/ && curl -sS http://b.example/",
			want: []string{`"a.example"`, `"b.example:80"`}},
		{name: "one of several names", script: "getent hosts b.example four.example; curl -sSk https://a.example/", want: []string{`"a.example"`}},
		{name: "private", script: "curl -sSk https://corp.example/", want: []string{`\{ host = "corp.example", private = true \}`}},
		{name: "numeric", script: "curl -sS http://203.0.113.80/", want: []string{`"203.0.113.80:80"`}, comments: "# 203.0.113.80:80: an address"},
		{name: "localhost", script: connects("127.0.0.1:18127"), outside: server + "sleep 0.5; ", want: []string{`"localhost:18127"`}},
		{name: "children", script: "for n in x y z; do curl -sSk https://$n.wild.example/ || exit; done",
			want: []string{`"x.wild.example"`, `"y.wild.example"`, `"z.wild.example"`}, comments: `# "*.wild.example" would allow 3`},
		{name: "fails", script: "curl -sSk https://a.example/; exit 4", want: []string{`"a.example"`}},
		{name: "looks up only", script: "getent hosts a.example"},
		{name: "metadata", script: "curl -sS -m 5 http://169.254.169.254/; curl -sSk https://metadata.example/; true"},
		{name: "another server name", script: "curl -sSk --connect-to ::a.example:443 https://evil.example/; true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := *b
			runs := func(argv ...string) int {
				return b.run(t, "sh", "-c", c.outside+quoteArgs(argv))
			}
			b.run(t, "sh", "-c", c.outside+c.script)
			seen := b.log
			status := runs("zsbx", "learn", "--rw", ".", "--", "sh", "-c", c.script)
			listed := ""
			if m := regexp.MustCompile(`(?s)(# .*\n)?\[net\]\nhosts = \[(.*?)\]\n?`).FindStringSubmatch(b.out + "\n"); m != nil {
				listed = m[2]
			}
			var got []string
			for _, line := range strings.FieldsFunc(listed, func(r rune) bool { return r == '\n' }) {
				got = append(got, strings.TrimSuffix(strings.TrimSpace(line), ","))
			}
			ok := len(got) == len(c.want)
			for i := range got {
				ok = ok && regexp.MustCompile("^"+strings.ReplaceAll(c.want[i], "*", "\\*")+"$").MatchString(got[i])
			}
			if !ok || !strings.Contains(b.out, c.comments) || c.comments == "" && strings.Contains(b.out, "\n# ") {
				t.Errorf("%q: %s", got, b.out)
			}
			if len(c.want) == 0 {
				return
			}
			if !slices.Equal(arrived(b.log), arrived(seen)) {
				t.Errorf("this arrived: %s, and without zsbx: %s", b.log, seen)
			}
			file := filepath.Join(b.Dir, "learnt.toml")
			text := "[net]\nhosts = [" + listed + "]\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			again := runs("zsbx", "run", "--rw", ".", "-p", file, "--", "sh", "-c", c.script)
			if again != status || strings.Contains(b.out, "zsbx: refused") || !slices.Equal(arrived(b.log), arrived(seen)) {
				t.Errorf("with %s: %s, %s", text, b.out, b.log)
			}
			if err := os.WriteFile(file, []byte("[net]\nhosts = []\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			runs("zsbx", "run", "--rw", ".", "-p", file, "--", "sh", "-c", c.script)
			if !strings.Contains(b.out, "zsbx: refused") {
				t.Errorf("control: %s", b.out)
			}
		})
	}
}

// arrived returns the sorted lines about connections and what was asked for, without addresses.
func arrived(log string) []string {
	lines := strings.Split(log, "\n")
	for i, l := range lines {
		kind, rest, _ := strings.Cut(l, " ")
		what, _, _ := strings.Cut(rest, " at ")
		if kind != "tls" && kind != "http" && kind != "tcp" {
			what = ""
		}
		lines[i] = what
	}
	lines = slices.DeleteFunc(lines, func(l string) bool { return l == "" })
	slices.Sort(lines)
	return lines
}

// TestLearnHostsAccepted: what was learnt is tried, and what is refused then is learnt, too. A network that
// was closed stays so.
func TestLearnHostsAccepted(t *testing.T) {
	b := newBedWith(t, "curl")
	const script = "curl -sSk https://a.example/ >/dev/null || exit 2; test -e there || { : >there; exit 0; }; curl -sSk https://b.example/"
	status := b.run(t, "zsbx", "learn", "--yes", "--rw", ".", "--", "sh", "-c", script)
	if status != 0 || !strings.Contains(b.out, `"b.example"`) || !strings.Contains(b.out, "refused: b.example:443") ||
		!strings.Contains(b.out, "round 3: exit status 0") {
		t.Errorf("status %d: %s", status, b.out)
	}
	b.run(t, "zsbx", "learn", "--yes", "--no-net", "--", "sh", "-c", "curl -sSk https://a.example/; true")
	if strings.Contains(b.out, "a.example\"") || b.log != "" {
		t.Errorf("%s, %s", b.out, b.log)
	}
	b.run(t, "zsbx", "learn", "--yes", "--allow-host", "a.example", "--deny-host", "a.example", "--", "sh", "-c",
		"curl -sSk https://a.example/; curl -sSk https://b.example/; true")
	if !strings.Contains(b.out, `hosts = ["b.example"]`) || strings.Contains(b.log, "http GET a.example") {
		t.Errorf("%s, %s", b.out, b.log)
	}
}
