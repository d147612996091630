package policy_test

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// TestTightens checks the promise of OnlyTightens: merged over any base, such a policy gives no
// access, port or variable that the base did not give.
func TestTightens(t *testing.T) {
	h := hosttest.Table(map[string]string{"/etc": "dir", "/usr/bin": "dir", "/home/u/x": "file", "/home/u/y": "dir", "/a$b": "dir", "/run/x": "socket", "/home/u/s": "socket", "/home/u/z": "dir", "/w/link": "-> /etc", "/ü \"q\" \\ '": "dir"})
	h.Env = append(h.Env, "A=a", "CARGO_X=1", "OTHER=1", "LD_PRELOAD=/x", "MY_TOKEN=1")
	tight := 0
	rapid.Check(t, func(t *rapid.T) {
		base, p := policy.DrawPolicy(t, true), policy.DrawPolicy(t, true)
		base.Net.DenyHosts = nil // often of what no rule allows, which is an error
		for _, b := range []*policy.Policy{base, base.Linux, base.MacOS} {
			if b != nil && b.Net.Allow.Value != "" { // flags are merged later, and nothing overrides them
				b.Net.Allow.Origin = policy.Origin{Source: "user.toml"}
			}
		}
		if rapid.Bool().Draw(t, "tame") { // most drawn policies widen
			deny, system, limits, mode, net := p.FS.Deny, p.FS.System, p.Limits, p.Env.Mode, p.Net
			for _, c := range system.Categories() {
				if *c.Rules != nil {
					*c.Rules = []policy.Rule{}
				}
			}
			p = &policy.Policy{FS: policy.FS{Deny: deny, System: system, Writes: p.FS.Writes}, Limits: limits, Env: policy.Env{Mode: mode}, Net: policy.Net{Allow: net.Allow, Hosts: net.Hosts, DenyHosts: net.DenyHosts, DenyBy: net.DenyBy}, Guard: p.Guard, Audit: policy.Audit{Required: p.Audit.Required}}
		}
		ok, wider := p.OnlyTightens(base)
		if ok != (len(wider) == 0) {
			t.Fatalf("%v, but %v", ok, wider)
		}
		if !ok {
			return
		}
		tight++
		before, err := resolve.Policy(base, h)
		if err != nil {
			return
		}
		after, err := resolve.Policy(policy.Merge(base, p), h)
		flat := policy.Merge(base, p).On(h.OS).Net
		if (flat.Hosts != nil || flat.DenyHosts != nil) && err != nil { // beside ports, or of what no rule allows
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		noMoreHosts(t, before, after)
		for _, path := range []string{"/", "/etc/x", "/usr/bin/ls", "/w", "/w/.env", "/home/u/x", "/home/u/y/z", "/a$b"} {
			for _, a := range []policy.Access{policy.Read, policy.Write, policy.Exec} {
				if after.Allowed(path, a).Allowed && !before.Allowed(path, a).Allowed {
					t.Fatalf("%s %s is allowed afterwards only", a, path)
				}
			}
		}
		for _, port := range append(portNumbers(base), 80) {
			if after.Connect("x.example", port).Allowed && !before.Connect("x.example", port).Allowed || after.Bind(port).Allowed && !before.Bind(port).Allowed {
				t.Fatalf("port %d is open afterwards only", port)
			}
		}
		for _, e := range after.Env {
			if !slices.Contains(before.Env, e) {
				t.Fatalf("%s is set afterwards only: %q", e, before.Env)
			}
		}
		if longer(after.Limits.Timeout.Value, before.Limits.Timeout.Value) || longer(after.Limits.MaxOutput.Value, before.Limits.MaxOutput.Value) {
			t.Fatal("the limits are higher afterwards")
		}
		if before.Writes.Value == "try" && after.Writes.Value != "try" {
			t.Fatal("what was written into a layer is written at once afterwards")
		}
		for _, n := range base.GuardOn(h.OS).Lists {
			if !slices.Contains(policy.Merge(base, p).GuardOn(h.OS).Lists, n) {
				t.Fatalf("the guard's list %s is off afterwards", n.Value)
			}
		}
		log, err := resolve.AuditLog(base, h)
		then, err2 := resolve.AuditLog(policy.Merge(base, p), h)
		if err != nil || err2 != nil || log != nil && (then.Dir.Value != log.Dir.Value || then.Keep.Value != log.Keep.Value || log.Required.Value == "true" && then.Required.Value != "true") {
			t.Fatalf("the audit log is %+v, %v and then %+v, %v", log, err, then, err2)
		}
	})
	if tight == 0 && !testing.Short() { // of a few policies perhaps none tightens
		t.Error("no policy that tightens was drawn")
	}
}

// noMoreHosts checks that no host can be reached with one policy that can't be with another.
func noMoreHosts(t *rapid.T, before, after *resolve.Resolved) {
	for _, host := range []string{"a.example", "b.a.example", "c.b.a.example", "c.example", "x.example", "10.1.0.1", "10.9.0.1", "11.0.0.1", "127.0.0.1"} {
		for _, port := range []uint16{22, 80, 443, 5432} {
			if after.Connect(host, port).Allowed && !before.Connect(host, port).Allowed {
				t.Fatalf("%s:%d can be reached afterwards only", host, port)
			}
		}
	}
}

// TestTightensHosts is TestTightens for lists of hosts only, of which more tighten. What a rule says
// beside the names counts, too.
func TestTightensHosts(t *testing.T) {
	h := hosttest.Table(nil)
	tight := 0
	rapid.Check(t, func(t *rapid.T) {
		base := &policy.Policy{Net: policy.Net{Hosts: policy.DrawHosts(t)}}
		p := &policy.Policy{Net: policy.Net{Hosts: policy.DrawHosts(t)}}
		if len(base.Net.Hosts) > 0 && rapid.Bool().Draw(t, "the same list") { // else few tighten
			p.Net.Hosts = slices.Clone(base.Net.Hosts)
		}
		if ok, _ := p.OnlyTightens(base); !ok {
			return
		}
		before, err := resolve.Policy(base, h)
		if err != nil {
			return
		}
		after, err := resolve.Policy(policy.Merge(base, p), h)
		if err != nil { // one of a source says something else
			return
		}
		if len(p.Net.Hosts) > 0 {
			tight++
		}
		noMoreHosts(t, before, after)
		ask := rule.Ask{Names: []string{"b.a.example"}, Addr: netip.MustParseAddr("10.1.0.1"), Port: 443, Seen: &rule.Seen{Kind: rule.TLS, Name: "b.a.example"}}
		ask.Seen.ECH = rapid.Bool().Draw(t, "seen ech")
		ask.Seen.Kind = rapid.SampledFrom([]rule.Kind{rule.TLS, rule.HTTP, rule.TCP}).Draw(t, "seen")
		if rapid.Bool().Draw(t, "public") {
			ask.Addr = netip.MustParseAddr("203.0.113.1")
		}
		if before.Net.Mode == resolve.NetHosts {
			was, is := before.Net.Hosts.Rules.Decide(ask), after.Net.Hosts.Rules.Decide(ask)
			if is.Allowed() && !was.Allowed() {
				t.Fatalf("%+v is allowed afterwards only: %s", ask, was.Text)
			}
		}
	})
	if tight == 0 && !testing.Short() {
		t.Error("no list that tightens was drawn")
	}
	t.Logf("%d lists tightened", tight)
}

func portNumbers(p *policy.Policy) []uint16 {
	var all []uint16
	for _, list := range [][]policy.Port{p.Net.ConnectTCP, p.Net.BindTCP} {
		for _, port := range list {
			all = append(all, port.Number)
		}
	}
	return all
}

// longer compares limits, of which 0 is no limit.
func longer(limit, than int64) bool { return than != 0 && (limit == 0 || limit > than) }
