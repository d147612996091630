package resolve

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/policy"
)

// byFlag makes a policy of hosts that flags allow. Those that end with " private" are of --allow-private-host.
func byFlag(rules ...string) *policy.Policy {
	p := &policy.Policy{}
	for _, text := range rules {
		v := policy.Named{Origin: policy.Origin{Source: "--allow-host"}}
		v.Value, v.Name, _ = strings.Cut(text, " ")
		if v.Name != "" {
			v.Origin.Source = "--allow-private-host"
		}
		_ = p.Put("net.hosts", v)
	}
	return p
}

// texts writes rules with their marks.
func texts(list []Host) string {
	var all []string
	for _, h := range list {
		text := h.Rule.String()
		if h.Private {
			text += " private"
		}
		if h.ECH {
			text += " ech"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// TestResolveHosts: a list of hosts, empty or not, decides the mode.
func TestResolveHosts(t *testing.T) {
	h := hosttest.Table(nil)
	for _, tt := range []struct{ toml, from, allowed, denied, bind string }{
		{"hosts = []", "an empty list of hosts", "", "", ""},
		{"hosts = ['X.example.:443']", "p.toml:2:10", "x.example", "", ""},
		{"allow = false\nhosts = ['x.example']", "p.toml:3:10", "x.example", "", ""},
		{"allow = true\nhosts = ['x.example']", "p.toml:3:10", "x.example", "", ""},
		{"hosts = ['x.example', 'x.example']", "p.toml:2:10", "x.example", "", ""},
		{"hosts = ['*.x.example', { host = 'y.example', private = true, ech = true }]\ndeny_hosts = ['a.x.example:443']", "p.toml:2:10",
			"*.x.example, y.example private ech", "a.x.example:443", ""},
		{"hosts = ['x.example']\nbind_tcp = [80]", "p.toml:2:10", "x.example", "", "80"},
		{"hosts = []\nconnect_tcp = []\nbind_tcp = []", "an empty list of hosts", "", "", ""},
	} {
		n := mustResolve(t, mustTOML(t, "[net]\n"+tt.toml), h).Net
		got := []string{string(n.Mode), n.From.String(), texts(n.Hosts.Allowed), texts(n.Hosts.Denied), ports(n.BindTCP)}
		if want := []string{"hosts", tt.from, tt.allowed, tt.denied, tt.bind}; !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %q, want %q", tt.toml, got, want)
		}
		if n.Hosts.NXDomain || n.Hosts.Rules == nil || len(n.ConnectTCP) > 0 {
			t.Errorf("%q: %+v", tt.toml, n)
		}
	}
	if r := mustResolve(t, mustTOML(t, "[net]\nhosts = []\ndeny = 'nxdomain'"), h); !r.Net.Hosts.NXDomain {
		t.Error("deny = nxdomain is lost")
	}
	if r := mustResolve(t, mustTOML(t, "net.deny = 'nxdomain'"), h); r.Net.Mode != NetOpen {
		t.Errorf("%+v", r.Net)
	}
}

// TestHostsContradict: a list of hosts contradicts what else limits or opens the network, as a list of ports does.
func TestHostsContradict(t *testing.T) {
	h := hosttest.Table(nil)
	list := mustTOML(t, "net.hosts = ['x.example']")
	from := func(source string, n policy.Net) *policy.Policy {
		n.Allow.Origin = policy.Origin{Source: source, Line: 1, Column: 1}
		if strings.HasPrefix(source, "--") {
			n.Allow.Origin = policy.Origin{Source: source}
		}
		for i := range n.ConnectTCP {
			n.ConnectTCP[i].Origin = n.Allow.Origin
		}
		if n.Allow.Value == "" {
			n.Allow.Origin = policy.Origin{}
		}
		return &policy.Policy{Net: n}
	}
	open := policy.Net{Allow: policy.Named{Value: "true"}}
	closed := policy.Net{Allow: policy.Named{Value: "false"}}
	port := policy.Net{ConnectTCP: []policy.Port{{Number: 443}}}
	for name, tt := range map[string]struct {
		layers []*policy.Policy
		mode   NetMode // "" for an error
	}{
		"another file opens all":         {[]*policy.Policy{from("q.toml", open), list}, ""},
		"a flag, and a file opens all":   {[]*policy.Policy{from("q.toml", open), byFlag("y.example")}, NetHosts},
		"another file closes all":        {[]*policy.Policy{from("q.toml", closed), list}, NetHosts},
		"--net":                          {[]*policy.Policy{list, from("--net", open)}, NetOpen},
		"--no-net":                       {[]*policy.Policy{list, from("--no-net", closed)}, NetNone},
		"ports in a file":                {[]*policy.Policy{from("q.toml", port), list}, ""},
		"ports in a file, hosts by flag": {[]*policy.Policy{from("q.toml", port), byFlag("y.example")}, ""},
		"ports by flag":                  {[]*policy.Policy{list, from("--connect-tcp", port)}, ""},
		"ports and --no-net":             {[]*policy.Policy{list, from("q.toml", port), from("--no-net", closed)}, NetNone},
		"an empty list of ports":         {[]*policy.Policy{list, from("q.toml", policy.Net{ConnectTCP: []policy.Port{}})}, ""},
	} {
		r, err := Policy(policy.Merge(tt.layers...), h)
		var e *policy.Error
		switch {
		case tt.mode == "" && (!errors.As(err, &e) || e.Code != policy.CodeContradiction):
			t.Errorf("%s: %v", name, err)
		case tt.mode != "" && (err != nil || r.Net.Mode != tt.mode):
			t.Errorf("%s: %v, %+v", name, err, r)
		}
	}
	_, err := Policy(policy.Merge(from("q.toml", open), list), h)
	var e *policy.Error
	if !errors.As(err, &e) || e.Hint != "--allow-host x.example" || !strings.Contains(err.Error(), "q.toml:1:1: ") || !strings.Contains(err.Error(), "p.toml:1:14 ") {
		t.Errorf("%v, hint %q", err, e.Hint)
	}
	if r := mustResolve(t, policy.Merge(from("q.toml", open), list, byFlag("x.example")), h); r.Net.Mode != NetHosts {
		t.Errorf("with the hint: %+v", r.Net)
	}
}

// TestHostsTogether: what is wrong with the lists as a whole. In another layer a rule may say something else
// about a host: the last one holds.
func TestHostsTogether(t *testing.T) {
	h := hosttest.Table(nil)
	for in, want := range map[string]string{
		"hosts = ['x.example', 'x.example/tcp']":                              `p.toml:2:23: "x.example" is there twice`,
		"hosts = ['x.example', { host = 'x.example', private = true }]":       `p.toml:2:23: "x.example" is there twice`,
		"hosts = ['x.example']\ndeny_hosts = ['y.example']":                   `p.toml:3:15: no rule allows "y.example"`,
		"hosts = ['x.example']\ndeny_hosts = ['x.example:22']":                `p.toml:3:15: no rule allows "x.example:22"`,
		"hosts = []\ndeny_hosts = ['x.example']":                              "p.toml:3:15: a host is denied, but there are no hosts",
		"deny_hosts = ['x.example']":                                          `p.toml:2:15: "x.example" is denied, but nothing says which hosts are allowed`,
		"allow = false\ndeny_hosts = ['x.example']":                           `p.toml:3:15: "x.example" is denied, but nothing says`,
		"connect_tcp = [443]\ndeny_hosts = ['x.example']":                     `p.toml:3:15: "x.example" is denied, but nothing says`,
		"hosts = ['x.example']\n[linux.net]\nhosts = ['x.example/tcp']":       `p.toml:4:10: "x.example" is there twice`,
		"hosts = ['x.example']\n[macos.net]\nhosts = ['x.example/tcp']":       "",
		"hosts = ['*.x.example']\ndeny_hosts = ['a.x.example', '10.0.0.0/8']": "",
	} {
		_, err := Policy(mustTOML(t, "[net]\n"+in), h)
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
	file := mustTOML(t, "net.hosts = [{ host = 'x.example', private = true }, 'y.example']")
	r := mustResolve(t, policy.Merge(file, byFlag("x.example")), h)
	if got := texts(r.Net.Hosts.Allowed); got != "y.example, x.example" {
		t.Errorf("a flag over a file: %s", got)
	}
	for _, flags := range [][]string{{"x.example", "x.example/tcp"}, {"x.example", "x.example/tcp private"}} {
		if _, err := Policy(byFlag(flags...), h); err == nil {
			t.Errorf("%q contradict each other, and nothing is said", flags)
		}
	}
	for _, flags := range [][]string{
		{"x.example", "x.example private"}, {"x.example private", "x.example"}, {"x.example:443/tls", "x.example private", "x.example"},
	} {
		for _, below := range []*policy.Policy{{}, file} {
			n := mustResolve(t, policy.Merge(below, byFlag(flags...)), h).Net.Hosts
			last := n.Allowed[len(n.Allowed)-1]
			own := rule.Ask{Names: []string{"x.example"}, Addr: netip.MustParseAddr("10.0.0.1"), Port: 443}
			v := n.Rules.Decide(own)
			if strings.Count(texts(n.Allowed), "x.example") != 1 || last.Origin.Source != "--allow-private-host" || !v.Allowed() {
				t.Errorf("%q: %s, by %s, %+v", flags, texts(n.Allowed), last.Origin, v)
			}
		}
	}
	r = mustResolve(t, policy.Merge(byFlag("x.example private"), mustTOML(t, "net.hosts = ['x.example']")), h)
	if got := texts(r.Net.Hosts.Allowed); got != "x.example" {
		t.Errorf("a file over a flag: %s", got)
	}
	bad := &policy.Policy{Net: policy.Net{Hosts: []policy.Host{{Rule: "npm"}, {Rule: "x.example"}}, DenyHosts: []policy.Named{{Value: "x/y"}, {Value: "z.example"}}}}
	var all policy.Errors
	if _, err := Policy(bad, h); !errors.As(err, &all) || len(all) != 2 {
		t.Errorf("rules that a program made: %v", err)
	}
}

// TestHostWarning: a rule for everybody's names is no mistake, but is said.
func TestHostWarning(t *testing.T) {
	r := mustResolve(t, mustTOML(t, "net.hosts = ['x.example', '*.github.io']"), hosttest.Table(nil))
	if len(r.Warnings) != 1 || r.Warnings[0].Origin.Column != 27 || !strings.Contains(r.Warnings[0].Msg, "*.github.io allows them all") {
		t.Errorf("%v", r.Warnings)
	}
}

// TestHostsConnect: the verdict names the rule that decides and where it was written, or what to type.
func TestHostsConnect(t *testing.T) {
	r := mustResolve(t, policy.Merge(mustTOML(t, "[net]\nhosts = ['*.x.example:22', '10.0.0.0/8:443']\ndeny_hosts = ['no.x.example']\nbind_tcp = [80]"), byFlag("y.example")), hosttest.Table(nil))
	for _, tt := range []struct {
		host         string
		port         uint16
		reason, flag string
		allowed      bool
	}{
		{"a.x.example", 22, `a.x.example:22 is allowed by "*.x.example:22" (p.toml:2:10)`, "", true},
		{"Y.Example.", 443, `y.example:443 is allowed by "y.example" (--allow-host)`, "", true},
		{"10.1.2.3", 443, `10.1.2.3:443 is allowed by "10.0.0.0/8:443" (p.toml:2:28)`, "", true},
		{"[::ffff:10.1.2.3]", 443, `10.1.2.3:443 is allowed by "10.0.0.0/8:443" (p.toml:2:28)`, "", true},
		{"no.x.example", 22, `denied by "no.x.example" in [net] deny_hosts (p.toml:3:15)`, "", false},
		{"y.example", 80, "the host is allowed on 443 only (p.toml:2:10)", "--allow-host y.example:80", false},
		{"x.example", 22, "not in [net] hosts (p.toml:2:10)", "--allow-host x.example:22", false},
		{"127.0.0.1", 80, "a server of this machine that the session did not start (p.toml:2:10)", "--allow-host localhost:80", false},
		{"11.0.0.1", 443, "a numeric address, not in [net] hosts and not that of a name in it (p.toml:2:10)", "--allow-host 11.0.0.1:443", false},
		{"a\x1bb", 443, "not in [net] hosts (p.toml:2:10)", "", false},
	} {
		v := r.Connect(tt.host, tt.port)
		if v.Reason != tt.reason || v.Flag != tt.flag || v.Allowed != tt.allowed {
			t.Errorf("%s %d: %+v", tt.host, tt.port, v)
		}
	}
	if v := r.Bind(80); !v.Allowed {
		t.Errorf("listening on a listed port: %+v", v)
	}
	if v := r.Bind(81); v.Allowed || !strings.Contains(v.Reason, "only the session itself reaches its servers") {
		t.Errorf("listening on another port: %+v", v)
	}
}

// TestHostsProxies: the caller's proxies reach the command only if the policy names them.
func TestHostsProxies(t *testing.T) {
	h := hosttest.Table(nil)
	all := []string{
		"http_proxy=a", "https_proxy=b", "all_proxy=c", "no_proxy=d", "HTTP_PROXY=e", "HTTPS_PROXY=f", "ALL_PROXY=g", "NO_PROXY=h",
	}
	h.Env = append(h.Env, all...)
	proxies := func(toml string) (out []string) {
		r := mustResolve(t, mustTOML(t, toml), h)
		for _, v := range r.Env {
			if strings.Contains(strings.ToLower(v), "_proxy=") {
				out = append(out, v)
			}
		}
		if r.Net.Mode == NetHosts && slices.ContainsFunc(r.LeftOut(), func(name string) bool { return name == "http_proxy" }) {
			t.Error("a proxy that zsbx asks itself is said to be missing")
		}
		return out
	}
	for _, mode := range []string{"scrubbed", "sanitized", "inherit"} {
		control := proxies("net.connect_tcp = [443]\nenv.mode = '" + mode + "'")
		got := proxies("net.hosts = ['x.example']\nenv.mode = '" + mode + "'")
		if len(control) != len(all) || len(got) != 0 {
			t.Errorf("%s: %q, without hosts %q", mode, got, control)
		}
	}
	named := proxies("net.hosts = ['x.example']\nenv.allow = ['NO_PROXY', '*_proxy']\nenv.set.http_proxy = 'mine'")
	if !slices.Equal(named, []string{"NO_PROXY=h", "http_proxy=mine"}) {
		t.Errorf("named in full, by a glob, and set: %q", named)
	}
}

// TestManyHosts: 10,000 hosts are resolved in a time that grows with their number only, and then a
// decision takes as long as with one.
func TestManyHosts(t *testing.T) {
	h := hosttest.Table(nil)
	resolved := func(n int) (*Resolved, time.Duration) {
		p := &policy.Policy{}
		for i := range n {
			p.Net.Hosts = append(p.Net.Hosts, policy.Host{Rule: fmt.Sprintf("*.h%d.example", i), Origin: policy.Origin{Source: "p.toml", Line: i + 1}})
		}
		var r *Resolved
		least := time.Hour
		for range 3 {
			start := time.Now()
			r = mustResolve(t, p, h)
			least = min(least, time.Since(start))
		}
		return r, least
	}
	decision := func(r *Resolved) time.Duration {
		least := time.Hour
		for range 20 {
			start := time.Now()
			for range 1000 {
				r.Net.Hosts.Rules.Decide(rule.Target("a.b.h0.example", 443))
			}
			least = min(least, time.Since(start))
		}
		return least
	}
	one, _ := resolved(1)
	_, some := resolved(1000)
	many, all := resolved(policy.MaxRules)
	few, lots := decision(one), decision(many)
	t.Logf("resolved: %v for 1,000, %v for 10,000; 1000 decisions: %v with one, %v with 10,000", some, all, few, lots)
	if all > 40*some {
		t.Errorf("10,000 hosts are resolved in %v, 1,000 in %v", all, some)
	}
	if lots > 5*few {
		t.Errorf("1000 decisions take %v with one rule, %v with 10,000", few, lots)
	}
	p := &policy.Policy{Net: policy.Net{Hosts: make([]policy.Host, policy.MaxRules+1)}}
	if _, err := Policy(p, h); err == nil || !strings.Contains(err.Error(), "the most is 10000") {
		t.Errorf("one more: %v", err)
	}
}
