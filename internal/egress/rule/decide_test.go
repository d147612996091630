package rule_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/zsbx/zsbx/internal/egress/rule"
)

// set makes a set of rules separated by commas; a "!" stands before a denial.
func set(t testing.TB, text string) *rule.Set {
	rules, denials := lists(t, text)
	return rule.NewSet(rules, denials)
}

func lists(t testing.TB, text string) (rules, denials []rule.Rule) {
	for part := range strings.SplitSeq(text, ", ") {
		d, denied := strings.CutPrefix(part, "!")
		if !denied {
			rules = append(rules, parse(t, part))
			continue
		}
		r, err := rule.ParseDenial(d)
		if err != nil {
			t.Fatal(err)
		}
		denials = append(denials, r)
	}
	return rules, denials
}

const list = "packages.example, code.example:22, *.files.example, !secret.files.example, private registry.corp.example, " +
	"mirror.example:80, 10.1.2.0/24:5432, [2001:db8::1]:22, localhost:6379, 0.0.0.0/0:9, ech app.example, db.example:5432, " +
	"!10.1.2.9:5432, ssh.example/tcp, *.deep.files.example:8443/tls, !*.files.example:8080"

// TestDeniedBeside: what "*" allows is looked at if a name is denied, since an address may have several names.
func TestDeniedBeside(t *testing.T) {
	const names = "*, !evil.example, !*.evil.example:80"
	tls := func(name string) *rule.Seen { return &rule.Seen{Kind: rule.TLS, Name: name} }
	http := func(name string) *rule.Seen { return &rule.Seen{Kind: rule.HTTP, Name: name} }
	for _, c := range []struct {
		rules string
		port  uint16
		seen  *rule.Seen
		looks bool
		want  string // why it is refused; "" if it is allowed
	}{
		{"*", 443, tls("evil.example"), false, ""},
		{"*, !203.0.113.9", 443, tls("evil.example"), false, ""},
		{names, 443, nil, true, ""},
		{names, 443, tls("a.example"), true, ""},
		{names, 443, tls("other.example"), true, ""},
		{names, 443, tls(""), true, ""},
		{names, 443, &rule.Seen{Kind: rule.TCP}, true, ""},
		{names, 443, tls("evil.example"), true, "denied"},
		{names, 443, tls("EVIL.example."), true, "denied"},
		{names, 443, tls("a.evil.example"), true, ""},
		{names, 443, &rule.Seen{Kind: rule.TLS, Fault: "two names"}, true, "not-tls"},
		{names + ", *:80", 80, http("a.evil.example"), true, "denied"},
		{names + ", *:80", 80, http("Evil.example.:8080"), true, "denied"},
		{names + ", *:80", 80, http("a.example:8080"), true, ""},
		{names + ", *:80", 80, &rule.Seen{Kind: rule.HTTP, Fault: "two hosts"}, true, "http"},
	} {
		a := rule.Ask{Names: []string{"a.example"}, Addr: netip.MustParseAddr("203.0.113.1"), Port: c.port}
		s := set(t, c.rules)
		v := s.Decide(a)
		if !v.Allowed() || v.Looks() != c.looks {
			t.Errorf("%s: before anything is read: %+v", c.rules, v)
		}
		a.Seen = c.seen
		if v := s.Decide(a); string(v.Reason) != c.want {
			t.Errorf("%s: %+v: %s, want %q", c.rules, c.seen, v.Reason, c.want)
		}
	}
}

// TestDecide: each kind of question, and which reason it is refused for.
func TestDecide(t *testing.T) {
	s := set(t, list)
	tls := func(name string) *rule.Seen { return &rule.Seen{Kind: rule.TLS, Name: name} }
	http := func(name string) *rule.Seen { return &rule.Seen{Kind: rule.HTTP, Name: name} }
	for _, c := range []struct {
		names, addr string
		port        uint16
		seen        *rule.Seen
		want        string // the reason, or the rule that allows it
	}{
		{"packages.example", "203.0.113.1", 443, nil, "packages.example"},
		{"Packages.Example.", "", 443, nil, "packages.example"},
		{"packages.example", "", 22, nil, "port"},
		{"evil.example", "", 443, nil, "host"},
		{"evil.example packages.example", "203.0.113.1", 443, nil, "packages.example"},
		{"evil.example packages.example", "203.0.113.1", 22, nil, "port"},
		{"files.example", "", 443, nil, "host"},
		{"a.files.example", "", 443, nil, "*.files.example"},
		{"a.b.files.example", "", 443, nil, "*.files.example"},
		{"a.deep.files.example", "", 443, nil, "*.files.example"},
		{"a.deep.files.example", "", 8443, nil, "*.deep.files.example:8443/tls"},
		{"secret.files.example", "", 443, nil, "denied"},
		{"secret.files.example", "", 0, nil, "denied"},
		{"a.files.example", "", 8080, nil, "denied"},
		{"a.files.example", "", 0, nil, "*.files.example"},
		{"packages.example", "10.0.0.1", 443, nil, "private"},
		{"packages.example", "127.0.0.1", 443, nil, "private"},
		{"packages.example", "::ffff:10.0.0.1", 443, nil, "private"},
		{"packages.example", "64:ff9b::a9fe:a9fe", 443, nil, "private"},
		{"packages.example", "fd20:ce::254", 443, nil, "private"},
		{"packages.example", "200::1", 443, nil, "private"},
		{"packages.example", "::ffff:0:7f00:1", 443, nil, "private"},
		{"packages.example", "f000::1", 443, nil, "private"},
		{"packages.example", "3fff::1", 443, nil, "packages.example"},
		{"packages.example", "2002:7f00:1::", 443, nil, "private"},
		{"registry.corp.example", "10.0.0.1", 443, nil, "registry.corp.example"},
		{"packages.example", "10.1.2.3", 5432, nil, "10.1.2.0/24:5432"},
		{"", "10.1.2.3", 5432, nil, "10.1.2.0/24:5432"},
		{"", "::ffff:10.1.2.3", 5432, nil, "10.1.2.0/24:5432"},
		{"", "10.1.2.9", 5432, nil, "denied"},
		{"db.example", "10.1.2.9", 5432, nil, "denied"},
		{"", "10.1.3.3", 5432, nil, "port"},
		{"", "2001:db8::1", 22, nil, "[2001:db8::1]:22"},
		{"", "2001:db8::2", 22, nil, "numeric"},
		{"", "8.8.8.8", 9, nil, "0.0.0.0/0:9"},
		{"", "127.0.0.1", 9, nil, "loopback"},
		{"", "0.0.0.0", 9, nil, "loopback"},
		{"", "::", 9, nil, "loopback"},
		{"", "127.0.0.2", 6379, nil, "localhost:6379"},
		{"", "::1", 6379, nil, "localhost:6379"},
		{"", "::ffff:127.0.0.1", 6380, nil, "loopback"},
		{"localhost", "", 6379, nil, "localhost:6379"},
		{"localhost", "", 80, nil, "loopback"},

		{"packages.example a.files.example", "203.0.113.1", 443, tls("A.files.example."), "*.files.example"},
		{"packages.example", "203.0.113.1", 443, tls("a.files.example"), "sni"},
		{"packages.example", "203.0.113.1", 443, tls("PacKages.example"), "packages.example"},
		{"packages.example", "203.0.113.1", 443, tls("pac\u212aages.example"), "sni"},
		{"mirror.example", "203.0.113.1", 80, http("m\u0130rror.example"), "http-host"},
		{"pac\u212aages.example", "", 443, nil, "host"},
		{"packages.example", "203.0.113.1", 443, tls(""), "no-sni"},
		{"packages.example", "203.0.113.1", 443, http("packages.example"), "not-tls"},
		{"packages.example", "203.0.113.1", 443, &rule.Seen{Kind: rule.TCP}, "not-tls"},
		{"packages.example", "203.0.113.1", 443, &rule.Seen{Kind: rule.TLS, Name: "packages.example", ECH: true}, "ech"},
		{"packages.example", "203.0.113.1", 443, &rule.Seen{Kind: rule.TLS, Fault: "short"}, "not-tls"},
		{"app.example", "203.0.113.1", 443, &rule.Seen{Kind: rule.TLS, Name: "app.example", ECH: true}, "app.example"},
		{"mirror.example", "203.0.113.1", 80, http("mirror.example"), "mirror.example:80"},
		{"mirror.example", "203.0.113.1", 80, http("evil.example"), "http-host"},
		{"mirror.example", "203.0.113.1", 80, tls("mirror.example"), "http"},
		{"mirror.example", "203.0.113.1", 80, &rule.Seen{Kind: rule.HTTP, Name: "mirror.example", Fault: "two hosts"}, "http"},
		{"db.example", "203.0.113.1", 5432, &rule.Seen{Kind: rule.TCP}, "db.example:5432"},
		{"db.example", "203.0.113.1", 5432, tls("db.example"), "db.example:5432"},
		{"db.example", "203.0.113.1", 5432, tls("evil.example"), "sni"},
		{"db.example", "203.0.113.1", 5432, http("evil.example"), "http-host"},
		{"ssh.example packages.example", "203.0.113.1", 443, &rule.Seen{Kind: rule.TCP}, "ssh.example/tcp"},
	} {
		a := rule.Ask{Names: strings.Fields(c.names), Port: c.port, Seen: c.seen}
		if c.addr != "" {
			a.Addr = netip.MustParseAddr(c.addr)
		}
		v := s.Decide(a)
		got := string(v.Reason)
		if v.Allowed() {
			got = v.Rule.String()
		}
		if got != c.want || v.Allowed() == (v.Text != "") {
			t.Errorf("%s %s %d %+v: %s (%s), want %s", c.names, c.addr, c.port, c.seen, got, v.Text, c.want)
		}
	}
}

// TestNoHost: a name that is none of a host, which a resolver may be asked for all the same, is never allowed: a proxy
// would take it for another one.
func TestNoHost(t *testing.T) {
	s := set(t, "*.files.example, *:443")
	for name, want := range map[string]bool{
		"x.files.example": true, "X_y.files.example.": true, "evil.example/x.files.example": false,
		"evil.example http/1.1\r\nx.files.example": false, "evil.example:80.files.example": false,
		"evil@x.files.example": false, "\u212a.files.example": false, "evil.example/x": false, ".": false,
	} {
		v := s.Decide(rule.Ask{Names: []string{name}, Port: 443})
		if v.Allowed() != want {
			t.Errorf("%q: %s", name, v.Line(""))
		}
	}
}

// TestAll: "*" is each name with a public address, and outranked by what is narrower.
func TestAll(t *testing.T) {
	s := set(t, "*, *:80, packages.example, !evil.example")
	for _, c := range []struct {
		name, addr string
		port       uint16
		ok, direct bool
	}{
		{"any.example", "203.0.113.1", 443, true, true},
		{"any.example", "203.0.113.1", 80, true, true},
		{"any.example", "203.0.113.1", 22, false, false},
		{"any.example", "10.0.0.1", 443, false, false},
		{"any.example", "169.254.169.254", 80, false, false},
		{"evil.example", "203.0.113.1", 443, false, false},
		{"packages.example", "203.0.113.1", 443, true, false},
	} {
		v := s.Decide(rule.Ask{Names: []string{c.name}, Addr: netip.MustParseAddr(c.addr), Port: c.port})
		if v.Allowed() != c.ok || c.ok && v.Rule.Direct() != c.direct {
			t.Errorf("%s %s %d: %+v", c.name, c.addr, c.port, v)
		}
	}
	numeric := s.Decide(rule.Ask{Addr: netip.MustParseAddr("203.0.113.1"), Port: 443})
	if numeric.Reason != rule.Numeric {
		t.Errorf("an address without a name: %+v", numeric)
	}
}

// TestLine: refusals as users read them; no byte of a name controls the terminal.
func TestLine(t *testing.T) {
	s := set(t, "packages.example, code.example, registry.corp.example, many.example:1, many.example:2, many.example:3, !x.packages.example")
	at := netip.MustParseAddr("203.0.113.1")
	for _, c := range []struct {
		ask  rule.Ask
		want string
	}{
		{rule.Target("evil.example", 443), "evil.example:443 (curl, pid 4711): not in [net] hosts; to allow: --allow-host evil.example"},
		{rule.Target("code.example", 22), "code.example:22 (curl, pid 4711): the host is allowed on 443 only; to allow: --allow-host code.example:22"},
		{rule.Target("many.example", 22), "many.example:22 (curl, pid 4711): the host is allowed on 1, 2 and 3 only; to allow: --allow-host many.example:22"},
		{rule.Ask{Names: []string{"packages.example"}, Addr: at, Port: 443, Seen: &rule.Seen{Kind: rule.TLS, Name: "evil.example"}},
			`packages.example:443 (curl, pid 4711): the TLS handshake asks for "evil.example"`},
		{rule.Ask{Names: []string{"registry.corp.example"}, Addr: netip.MustParseAddr("10.38.140.27"), Port: 443},
			"registry.corp.example:443 (curl, pid 4711): its address 10.38.140.27 is private; to allow: --allow-private-host registry.corp.example"},
		{rule.Target("2001:db8::5", 443), "[2001:db8::5]:443 (curl, pid 4711): a numeric address, not in [net] hosts and not that of a name in it; " +
			"to allow: --allow-host '[2001:db8::5]:443'"},
		{rule.Target("::", 80), "[::]:80 (curl, pid 4711): a server of this machine that the session did not start; to allow: --allow-host localhost:80"},
		{rule.Target("127.0.0.1", 5432), "127.0.0.1:5432 (curl, pid 4711): a server of this machine that the session did not start; " +
			"to allow: --allow-host localhost:5432"},
		{rule.Target("a\x1b]0;x\a\u009b.example", 443), `"a\x1b]0;x\a\u009b.example":443 (curl, pid 4711): not in [net] hosts`},
		{rule.Target(strings.Repeat("é", 300), 443), `"` + strings.Repeat(`\u00e9`, 40) + `"...:443 (curl, pid 4711): not in [net] hosts`},
		{rule.Ask{Names: []string{"packages.example"}, Addr: at, Port: 443, Seen: &rule.Seen{Kind: rule.TLS, Name: "\x1b[2J"}},
			`packages.example:443 (curl, pid 4711): the TLS handshake asks for "\x1b[2j"`},
	} {
		if v := s.Decide(c.ask); !strings.Contains(v.Line("x\x1b[2J"), `(x\x1b[2J)`) {
			t.Errorf("a program's name is printed raw: %s", v.Line("x\x1b[2J"))
		}
		v := s.Decide(c.ask)
		if got := v.Line("curl, pid 4711"); !strings.EqualFold(got, c.want) {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// TestPrivateHint: the rule that a refusal of a private address names is the one that is there, with the mark.
// The host may be asked for without a port, as by a resolver.
func TestPrivateHint(t *testing.T) {
	for text, want := range map[string]string{
		"a.example":           "--allow-private-host a.example",
		"a.example/tcp":       "--allow-private-host a.example/tcp",
		"a.example:8080":      "--allow-private-host a.example:8080",
		"a.example:8080/http": "--allow-private-host a.example:8080/http",
		"*.b.example/tcp":     "--allow-private-host a.b.example/tcp",
		"*":                   "--allow-private-host a.example",
	} {
		s := set(t, text)
		name := "a.example"
		if strings.HasPrefix(text, "*.") {
			name = "a.b.example"
		}
		r, err := rule.Parse(text, rule.Marks{})
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range []uint16{0, r.Port} {
			v := s.Decide(rule.Ask{Names: []string{name}, Addr: netip.MustParseAddr("10.0.0.1"), Port: port})
			if v.Reason != rule.Private || v.Flag != want {
				t.Errorf("%s, port %d: %s, want %s", text, port, v.Flag, want)
			}
		}
		public := rule.Ask{Names: []string{name}, Addr: netip.MustParseAddr("203.0.113.1"), Port: r.Port}
		if v := s.Decide(public); !v.Allowed() {
			t.Errorf("control: %s: %+v", text, v)
		}
	}
}

// TestCheck: what is wrong with a list as a whole.
func TestCheck(t *testing.T) {
	for text, want := range map[string]string{
		"a.example, a.example":                      "",
		"a.example, private a.example":              "[1]",
		"a.example, a.example/tcp":                  "[1]",
		"a.example, a.example:22":                   "",
		"*.a.example, !b.a.example":                 "",
		"b.a.example, !*.a.example":                 "",
		"*.b.a.example, !*.a.example":               "",
		"b.a.example, !*.a.example:22":              "[!0]",
		"a.example, !b.example":                     "[!0]",
		"a.example, !a.example:22":                  "[!0]",
		"a.example, !10.0.0.0/8":                    "",
		"10.0.0.1:22, !10.0.0.0/8":                  "",
		"10.0.0.1:22, !11.0.0.0/8, !10.0.0.0/8:443": "[!0 !1]",
		"!a.example":                                "[!0]",
		"a.example, !localhost":                     "[!0]",
	} {
		var got []string
		rules, denials := lists(t, text)
		for _, p := range rule.Check(rules, denials) {
			at := fmt.Sprint(p.Index)
			if p.Denial {
				at = "!" + at
			}
			got = append(got, at)
		}
		if strings.TrimPrefix(fmt.Sprint(got), "[]") != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
}

// drawn are rules and questions that meet often.
var drawn = []string{
	"a.x.example", "x.example", "*.x.example", "*.a.x.example", "b.a.x.example", "*.y.example", "private a.x.example", "private *.x.example",
	"ech *.x.example", "ech a.x.example", "a.x.example/tcp", "*.x.example/tcp", "*.x.example:80", "a.x.example:80", "a.x.example/http", "*", "*:80",
	"private b.a.x.example/tcp", "localhost:443", "127.0.0.1:443", "10.0.0.0/8:443", "10.1.0.0/16:443", "10.1.2.3:443", "0.0.0.0/0:443", "127.0.0.0/8:443",
}

func someRules(t *rapid.T, label string) (out []rule.Rule) {
	for _, text := range rapid.SliceOfN(rapid.SampledFrom(drawn), 1, 5).Draw(t, label) {
		text, private := strings.CutPrefix(text, "private ")
		text, ech := strings.CutPrefix(text, "ech ")
		r, err := rule.Parse(text, rule.Marks{Private: private, ECH: ech})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// TestNarrow: rules that a set covers, added to it, allow nothing that it did not allow.
func TestNarrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := someRules(t, "base")
		wide := rule.NewSet(base, nil)
		all := base
		for _, r := range someRules(t, "more") {
			if wide.Covers(&r) {
				all = append(all, r)
			}
		}
		both := rule.NewSet(all, nil)
		var ask rule.Ask
		ask.Names = rapid.SliceOfN(rapid.SampledFrom([]string{"a.x.example", "x.example", "b.a.x.example", "c.y.example", "localhost"}), 0, 2).Draw(t, "names")
		ask.Addr = netip.MustParseAddr(rapid.SampledFrom([]string{"203.0.113.1", "10.1.2.3", "10.1.2.4", "10.9.9.9", "127.0.0.1", "::1"}).Draw(t, "addr"))
		ask.Port = rapid.SampledFrom([]uint16{443, 80}).Draw(t, "port")
		ask.Seen = &rule.Seen{
			Kind: rapid.SampledFrom([]rule.Kind{rule.TLS, rule.HTTP, rule.TCP}).Draw(t, "kind"),
			Name: rapid.SampledFrom([]string{"a.x.example", "b.a.x.example", ""}).Draw(t, "seen"),
			ECH:  rapid.Bool().Draw(t, "ech"),
		}
		before := wide.Decide(ask)
		after := both.Decide(ask)
		if after.Allowed() && !before.Allowed() {
			t.Fatalf("%+v is allowed by %v only with what was covered: %s", ask, after.Rule, before.Text)
		}
	})
}

// TestManyRules: with 10,000 rules a decision takes no longer than with one, but for caches.
func TestManyRules(t *testing.T) {
	one := set(t, "packages.example, *.files.example")
	var rules []rule.Rule
	for i := range 10000 {
		rules = append(rules, parse(t, fmt.Sprintf("*.n%d.files.example:%d", i, 1+i%7)), parse(t, fmt.Sprintf("n%d.example", i)))
	}
	many := rule.NewSet(append(rules, parse(t, "packages.example"), parse(t, "*.files.example")), nil)
	best := func(s *rule.Set) time.Duration {
		least := time.Hour
		for range 20 {
			start := time.Now()
			for range 1000 {
				s.Decide(rule.Ask{Names: []string{"a.b.files.example"}, Port: 443})
			}
			least = min(least, time.Since(start))
		}
		return least
	}
	few, lots := best(one), best(many)
	t.Logf("1000 decisions: %v with two rules, %v with 20,000", few, lots)
	if lots > 5*few {
		t.Errorf("1000 decisions take %v with two rules, %v with 20,000", few, lots)
	}
}
