package resolve

import (
	"slices"
	"testing"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/policy"
)

// rules makes a policy of rules with one access.
func rules(a policy.Access, paths ...string) *policy.Policy {
	p := &policy.Policy{}
	for i, name := range paths {
		p.FS.Rules = append(p.FS.Rules, policy.Rule{Path: name, Access: a, Origin: policy.Origin{Source: "test", Line: i + 1, Column: 1}})
	}
	return p
}

// mustResolve resolves a policy that has to be right.
func mustResolve(t testing.TB, p *policy.Policy, h host.Host) *Resolved {
	t.Helper()
	r, err := Policy(p, h)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// mustTOML decodes a policy that has to be right.
func mustTOML(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Decode("p.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// partsOf returns a policy and its overrides for single systems.
func partsOf(p *policy.Policy) []*policy.Policy {
	return slices.DeleteFunc([]*policy.Policy{p, p.Linux, p.MacOS}, func(p *policy.Policy) bool { return p == nil })
}
