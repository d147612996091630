package enforce

import (
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/enforce/seatbelt"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// onlyHosts limits the network of a policy to hosts by name.
func onlyHosts(r *resolve.Resolved, rules ...string) {
	from := policy.Origin{Source: "--allow-host"}
	n := &r.Net
	n.Mode = resolve.NetHosts
	n.From = from
	var all []rule.Rule
	for _, text := range rules {
		one, _ := rule.Parse(text, rule.Marks{})
		all = append(all, one)
		n.Hosts.Allowed = append(n.Hosts.Allowed, resolve.Host{Rule: one, Origin: from})
	}
	n.Hosts.Rules = rule.NewSet(all, nil)
}

// TestDecideHosts: a plan answers for a host by its name and port, and what to type is the flag for
// it. Where no host can be reached it says so, also of one that the policy lists.
func TestDecideHosts(t *testing.T) {
	h := treeHost(map[string]string{"/w/x": ""})
	full := canMount()
	full.Seccomp, full.SeccompNotify, full.Arch = true, true, "amd64"
	old := full
	old.Landlock = 2
	nested := full
	nested.SeccompNotify, nested.SeccompNotifyReason = false, "nested"
	for _, c := range []struct {
		name, host string
		caps       Caps
		port       uint16
		errno      string // "" if it is allowed
		reason     string
		hint       string
	}{
		{"listed", "x.example", full, 443, "", `x.example:443 is allowed by "x.example" (--allow-host)`, ""},
		{"listed, an old Landlock", "x.example", old, 443, "", "x.example:443 is allowed", ""},
		{"another port", "x.example", full, 22, "EACCES", "the host is allowed on 443 only", "--allow-host x.example:22"},
		{"another host", "y.example", full, 443, "EACCES", "not in [net] hosts", "--allow-host y.example"},
		{"another host, an old Landlock", "y.example", old, 443, "EACCES", "not in [net] hosts", "--allow-host y.example"},
		{"this machine", "[::1]", full, 80, "EACCES", "a server of this machine that the session did not start", "--allow-host localhost:80"},
		{"no broker", "x.example", nested, 443, "EACCES", "no host outside is reached here: a broker is needed: nested", ""},
		{"no broker, another host", "y.example", nested, 443, "EACCES", "no host outside is reached here: a broker is needed: nested", ""},
		{"macOS", "x.example", Caps{OS: "macos", Seatbelt: true}, 443, "", "x.example:443 is allowed", ""},
		{"macOS, another host", "y.example", Caps{OS: "macos", Seatbelt: true}, 443, "EPERM", "not in [net] hosts", "--allow-host y.example"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := asked(h, "", []string{"/w"})
			r.OS = c.caps.OS
			onlyHosts(r, "x.example")
			p := NewPlan(r, c.caps, h, Options{})
			act := Act{Op: ActConnect, Host: c.host, Port: c.port}
			got := p.Decide(act)
			if got.Errno != c.errno || (got.Verdict == Allowed) != (c.errno == "") || !strings.HasPrefix(got.Reason, c.reason) {
				t.Errorf("%s %s: %s, want %q: %s", got.Verdict, got.Errno, got.Reason, c.errno, c.reason)
			}
			hint := p.Hint(act, &got)
			if hint.Typed(p.Policy) != c.hint {
				t.Errorf("hint %q, want %q", hint.Typed(p.Policy), c.hint)
			}
			gap := p.Err(nil, false)
			if reached := c.caps.SeccompNotify || c.caps.Seatbelt; (gap == nil) != reached || gap != nil && !strings.Contains(gap.Error(), "[hosts]") {
				t.Errorf("%v", gap)
			}
		})
	}
	r := asked(h, "", []string{"/w"})
	onlyHosts(r, "x.example")
	r.Net.Hosts.NXDomain = true
	p := NewPlan(r, full, h, Options{})
	for host, want := range map[string]string{"y.example": "EAI_NONAME", "192.0.2.1": "EACCES"} {
		if got := p.Decide(Act{Op: ActConnect, Host: host, Port: 443}); got.Errno != want {
			t.Errorf("%s: %s, want %s", host, got.Errno, want)
		}
	}
}

// TestHostsByProxy: on macOS hosts are reached by a proxy, whose port and variables a plan has once it
// listens. Where nobody would serve it to the session's end, hosts can't be reached.
func TestHostsByProxy(t *testing.T) {
	h := treeHost(map[string]string{"/w/x": "", "/opt/zsbx": ""})
	plan := func(o Options, caps Caps) *Plan {
		r := asked(h, "", []string{"/w"})
		r.OS = "macos"
		onlyHosts(r, "x.example")
		return NewPlan(r, caps, h, o)
	}
	mac := Assume("macos")
	p := plan(Options{}, mac)
	if !p.ByProxy() || !p.ReachesHosts() || p.Err(nil, false) != nil {
		t.Fatal(p.Err(nil, false))
	}
	by := func(l Layer) bool { return l.Name == "hosts" && strings.Contains(l.Detail, "reach nothing") }
	if !slices.ContainsFunc(p.Layers(), by) {
		t.Error(p.Layers())
	}
	env := slices.Clone(p.Env)
	for range 2 { // a start that is tried again
		p.ForProxy(resolve.Proxy{Port: 4711, User: "u", Password: "p"}, "/opt/zsbx")
	}
	text, err := seatbelt.Profile(p.Policy, *p.Seatbelt)
	if err != nil || !strings.Contains(text, `(remote tcp "localhost:4711")`) {
		t.Error("the profile does not have the port", err)
	}
	names := func(env []string) (all []string) {
		for _, v := range env {
			name, _, _ := strings.Cut(v, "=")
			all = append(all, name)
		}
		return all
	}
	got := names(p.Env)
	if !slices.Contains(p.Env, "https_proxy=http://u:p@127.0.0.1:4711") || slices.Contains(got, "GIT_SSH_COMMAND") {
		t.Errorf("%q", p.Env)
	}
	if slices.Contains(names(env), "https_proxy") || len(slices.Compact(got)) != len(names(p.Env)) {
		t.Errorf("before %q, after %q", env, p.Env)
	}
	for name, q := range map[string]*Plan{
		"--keep":      plan(Options{NoProxy: "it ends"}, mac),
		"no Seatbelt": plan(Options{}, Caps{OS: "macos", SeatbeltReason: "inside another sandbox"}),
	} {
		err := q.Err(nil, false)
		if q.ByProxy() || q.ReachesHosts() || err == nil || !strings.Contains(err.Error(), "[hosts]") {
			t.Errorf("%s: %v", name, err)
		}
		if got := q.Decide(Act{Op: ActConnect, Host: "x.example", Port: 443}); got.Verdict == Allowed || !strings.Contains(got.Reason, q.noHosts) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
