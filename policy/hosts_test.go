package policy

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zsbx/zsbx/internal/testkit"
)

const hostsTOML = `[net]
hosts = ["packages.example", "code.example:22", { host = "x.example", private = true, ech = true }]
deny_hosts = ["gist.code.example"]
deny = "nxdomain"
`

const hostsJSON = `{"net": {"hosts": ["packages.example", "code.example:22", {"host": "x.example", "private": true, "ech": true}],
"deny_hosts": ["gist.code.example"], "deny": "nxdomain"}}`

// TestDecodeHosts: a list of hosts is read with its marks and places, the same from TOML and JSON. An
// empty list is not the same as none.
func TestDecodeHosts(t *testing.T) {
	at := func(line, col int) Origin { return Origin{"p.toml", line, col} }
	want := Net{
		Hosts: []Host{
			{Rule: "packages.example", Origin: at(2, 10)},
			{Rule: "code.example:22", Origin: at(2, 30)},
			{Rule: "x.example", Private: true, ECH: true, Origin: at(2, 49)},
		},
		DenyHosts: []Named{{Value: "gist.code.example", Origin: at(3, 15)}},
		DenyBy:    Named{Value: "nxdomain", Origin: at(4, 8)},
	}
	got := mustTOML(t, hostsTOML)
	if !reflect.DeepEqual(got.Net, want) {
		t.Errorf("got %+v\nwant %+v", got.Net, want)
	}
	fromJSON, err := Decode("p.json", []byte(hostsJSON))
	if err != nil || fromJSON.Hash() != got.Hash() {
		t.Errorf("from JSON: %v, %+v", err, fromJSON)
	}
	if p := mustTOML(t, "net.hosts = []"); p.Net.Hosts == nil || p.Hash() == (&Policy{}).Hash() {
		t.Errorf("an empty list: %+v", p.Net)
	}
	var text strings.Builder
	if err := got.EncodeTOML(&text); err != nil || !strings.Contains(text.String(), `  { host = "x.example", private = true, ech = true },`) {
		t.Errorf("%v\n%s", err, &text)
	}
	bad := &Policy{Net: Net{Hosts: []Host{{Rule: "x.example:22", ECH: true}}}}
	if err := bad.EncodeTOML(&text); err == nil {
		t.Error("what Decode refuses is written")
	}
}

// TestHostPlaces: each mistake in a rule is found, at the character of the file at which it begins.
func TestHostPlaces(t *testing.T) {
	for in, want := range map[string]string{
		`"*.com"`:             `:1: "*.com" is all of "com"`,
		`"a.*.example"`:       ":3: a wildcard stands alone",
		`'a.*.example'`:       ":3: a wildcard stands alone",
		`"""a.*.example"""`:   ":5: a wildcard stands alone",
		`"\u0061.*.example"`:  ":0: a wildcard stands alone", // not written as it is read
		`"https://x.example"`: ":1: a rule has no scheme",
		`"x.example/path"`:    `:10: "/path" is no kind`,
		`"u@x.example"`:       ":2: a rule has no user",
		`"x.example?q"`:       ":10: a rule has no query",
		`"x.example:0"`:       `:11: "0" is no port`,
		`"x.example:65536"`:   `:11: "65536" is no port`,
		`"x.example:22/ftp"`:  `:13: "/ftp" is no kind`,
		`"10.1.2.3"`:          ":9: an address needs a port",
		`"büc.example"`:       `:2: "b\u00fcc.example" is not ASCII`,
		`"x.` + strings.Repeat("a", 64) + `.example"`: ":3: ",
		`"` + strings.Repeat("a.", 127) + `b"`:        ":1: the name has 255 bytes",
		`"npm"`:                                       ":1: \"npm\" is no host: there are no groups of hosts",
		`{ host = "npm" }`:                            ":10: \"npm\" is no host",
		`{ host = "x.example:22", ech = true }`:       `:10: "x.example:22" is not TLS`,
		`{ host = "10.0.0.1:22", private = true }`:    `:10: "10.0.0.1:22" is no name`,
		`{ private = true }`:                          ":0: an entry of net.hosts without a host",
		`{ host = "x.example", path = "/" }`:          ":22: unknown key",
		`7`:                                           ":0: an entry of net.hosts must be a string",
	} {
		_, err := Decode("p.toml", []byte("net.hosts = ["+in+"]"))
		at, text, _ := strings.Cut(strings.TrimPrefix(want, ":"), ": ")
		var column int
		fmt.Sscan(at, &column)
		want := fmt.Sprintf("p.toml:1:%d: %s", len("net.hosts = [")+1+column, text)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got  %v\nwant %s", in, err, want)
		}
	}
	_, err := Decode("p.toml", []byte("[net]\nhosts = ['*.com', 'ok.example', 'x:0']\ndeny_hosts = ['x.example/tcp']\ndeny = 'no'\n"))
	var all Errors
	if !errors.As(err, &all) || len(all) != 4 {
		t.Errorf("not all at once: %v", err)
	}
	if _, err := Decode("p.json", []byte(`{"net": {"hosts": ["ok.example", "a.*.example"]}}`)); err == nil || !strings.HasPrefix(err.Error(), "p.json:1:37: ") {
		t.Errorf("%v", err)
	}
}

// TestHostHints: what to write is in the message, what to type in the hint.
func TestHostHints(t *testing.T) {
	for in, want := range map[string][2]string{
		"https://x.example/p": {`; write "x.example"`, ""},
		"npm":                 {"", "zsbx learn"},
		"a.*.example":         {"", ""},
	} {
		_, err := Decode("p.toml", []byte(fmt.Sprintf("net.hosts = [%q]", in)))
		var e *Error
		if !errors.As(err, &e) || e.Hint != want[1] || !strings.HasSuffix(e.Msg, want[0]) {
			t.Errorf("%s: %+v", in, e)
		}
	}
}

// TestHostsTighten: a host tightens if a weaker policy allows its name, port, kind and marks. A denial
// always does.
func TestHostsTighten(t *testing.T) {
	base := mustTOML(t, `net.hosts = ["*.x.example", "y.example:22", "10.0.0.0/8:443", { host = "z.example", private = true }, "w.example/tcp", "localhost:5432"]`)
	for in, want := range map[string]bool{
		`hosts = []`:                                         true,
		`deny_hosts = ["a.x.example"]`:                       true,
		`deny = "nxdomain"`:                                  true,
		`hosts = ["a.x.example"]`:                            true,
		`hosts = ["*.a.x.example", "y.example:22"]`:          true,
		`hosts = ["10.1.0.0/16:443"]`:                        true,
		`hosts = ["z.example"]`:                              true,
		`hosts = ["w.example"]`:                              true, // TLS only
		`hosts = [{ host = "z.example", private = true }]`:   true,
		`hosts = ["x.example"]`:                              false,
		`hosts = ["*.y.example"]`:                            false,
		`hosts = ["a.x.example:80"]`:                         false,
		`hosts = ["a.x.example/tcp"]`:                        false,
		`hosts = [{ host = "a.x.example", private = true }]`: false,
		`hosts = [{ host = "a.x.example", ech = true }]`:     false,
		`hosts = ["*"]`:                                      false,
		`hosts = ["10.0.0.0/7:443"]`:                         false,
		`hosts = ["localhost:5433"]`:                         false,
		`hosts = ["127.0.0.1:443"]`:                          false,
	} {
		ok, wider := mustTOML(t, "[net]\n"+in).OnlyTightens(base)
		if ok != want || len(wider) > 1 {
			t.Errorf("%s: %v, %v", in, ok, wider)
		}
	}
	ok, wider := mustTOML(t, `net.hosts = ["a.example", { host = "b.example", ech = true }]`).OnlyTightens(nil)
	if ok || len(wider) != 2 || wider[1].Value != `{ host = "b.example", ech = true }` || wider[0].Value != `"a.example"` || wider[0].Key != "net.hosts" {
		t.Errorf("where no host is listed: %v, %v", ok, wider)
	}
	onLinux := mustTOML(t, `linux.net.hosts = ["a.example"]`)
	if ok, _ := mustTOML(t, `net.hosts = ["a.example"]`).OnlyTightens(onLinux); ok {
		t.Error("a host that is allowed on one system counts for the other")
	}
}

// TestHashHosts: a mark is part of what a rule means.
func TestHashHosts(t *testing.T) {
	seen := map[string]string{}
	for _, in := range []string{
		"hosts = []", "hosts = ['x.example']", "hosts = [{ host = 'x.example', private = true }]", "hosts = [{ host = 'x.example', ech = true }]",
		"hosts = [{ host = 'x.example', ech = true, private = true }]", "deny_hosts = ['x.example']", "deny = 'error'", "deny = 'nxdomain'", "",
	} {
		h := mustTOML(t, "[net]\n"+in).Hash()
		if seen[h] != "" {
			t.Errorf("%s and %s have one hash", in, seen[h])
		}
		seen[h] = in
	}
}

// TestPutHosts: a wrong rule is an error and left out.
func TestPutHosts(t *testing.T) {
	p := &Policy{}
	from := Origin{Source: "--x"}
	err := p.Put("net.hosts", Named{Value: "x.example", Origin: from}, Named{Name: "private", Value: "y.example", Origin: from}, Named{Value: "npm"})
	want := []Host{{Rule: "x.example", Origin: from}, {Rule: "y.example", Private: true, Origin: from}}
	if err == nil || !slices.Equal(p.Net.Hosts, want) {
		t.Errorf("%v, %+v", err, p.Net.Hosts)
	}
	if err := p.Put("net.deny_hosts", Named{Value: "x.example/tcp"}); err == nil || p.Net.DenyHosts != nil {
		t.Errorf("%v, %+v", err, p.Net.DenyHosts)
	}
}

// TestAmendHosts: hosts are added to a file.
func TestAmendHosts(t *testing.T) {
	add := mustTOML(t, `net.hosts = ["x.example", { host = "y.example", private = true }]`)
	got, err := Amend("p.toml", []byte("[net]\nhosts = [\"x.example\"] # mine\n"), add)
	if want := "[net]\nhosts = [{ host = \"y.example\", private = true }, \"x.example\"] # mine\n"; err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
}

// TestManyHosts: reading, writing, comparing and hashing 10,000 rules takes a time that grows with
// their number only.
func TestManyHosts(t *testing.T) {
	list := func(n int) string {
		var b strings.Builder
		b.WriteString("net.hosts = [")
		for i := range n {
			fmt.Fprintf(&b, "'h%d.example',", i)
		}
		return b.String() + "]"
	}
	took := func(text string) time.Duration {
		start := time.Now()
		p := mustTOML(t, text)
		if ok, _ := p.OnlyTightens(p); !ok {
			t.Fatal("a policy is wider than itself")
		}
		p.Hash()
		Merge(p, p)
		return time.Since(start)
	}
	few, all := time.Hour, time.Hour
	if !testkit.Within(20*time.Second, func() bool { // a busy machine may be slow at one of them
		few = min(few, took(list(MaxRules/10)))
		all = min(all, took(list(MaxRules)))
		return all <= 40*few
	}) {
		t.Errorf("%v for %d, but %v for %d", few, MaxRules/10, all, MaxRules)
	}
}
