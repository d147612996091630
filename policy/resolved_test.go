package policy_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// TestResolvedRoundTrip checks that a resolved policy, written and read again, resolves to the same
// on the same machine.
func TestResolvedRoundTrip(t *testing.T) {
	h := hosttest.Table(map[string]string{
		"/etc": "dir", "/usr/bin": "dir", "/home/u/x": "file", "/home/u/y": "dir", "/home/u/z": "-> y", "/ü \"q\" \\ '": "dir",
		"/a$b": "dir", "/w/link": "-> /a$b", "/run/x": "socket", "/home/u/s": "socket", "/tmp/z": "dir",
	})
	h.Env = append(h.Env, "A=a", "CARGO_X=1", "OTHER=1", "LD_PRELOAD=/x")
	h.TempDir = "/tmp/z"
	facts := func(r *resolve.Resolved) []string {
		var all []string
		for _, p := range r.Paths {
			all = append(all, p.Access.String()+" "+p.Path)
		}
		for _, d := range r.Deny {
			all = append(all, "deny "+d.Pattern)
		}
		for _, p := range r.Net.Unix {
			all = append(all, "unix "+p.Path)
		}
		all = append(all, string(r.Net.Mode)+" "+ports(r.Net.ConnectTCP)+" "+ports(r.Net.BindTCP))
		for _, host := range r.Net.Hosts.Allowed {
			all = append(all, fmt.Sprintf("host %s %t %t", host.Rule.String(), host.Private, host.ECH))
		}
		for _, host := range r.Net.Hosts.Denied {
			all = append(all, "deny host "+host.Rule.String())
		}
		all = append(all, fmt.Sprint("nxdomain ", r.Net.Hosts.NXDomain))
		all = append(all, "writes "+r.Writes.Value)
		all = append(all, r.Env...)
		all = append(all, fmt.Sprint(r.Limits.Timeout.Value))
		slices.Sort(all)
		return slices.Compact(all)
	}
	modes := map[resolve.NetMode]int{}
	rapid.Check(t, func(t *rapid.T) {
		r, err := resolve.Policy(policy.DrawPolicy(t, true), h)
		if err != nil {
			return
		}
		modes[r.Net.Mode]++
		var b bytes.Buffer
		if err := r.Policy().EncodeTOML(&b); err != nil {
			t.Fatal(err)
		}
		p, err := policy.Decode("p.toml", b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		again, err := resolve.Policy(p, h)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := facts(r), facts(again); !slices.Equal(a, b) {
			t.Fatalf("first  %q\nagain  %q", a, b)
		}
	})
	t.Logf("%v", modes)
}

func ports(list []policy.Port) string {
	var s []string
	for _, p := range list {
		s = append(s, fmt.Sprint(p.Number))
	}
	return strings.Join(s, " ")
}
