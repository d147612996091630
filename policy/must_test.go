package policy

import "testing"

// rules makes a policy of rules with one access.
func rules(a Access, paths ...string) *Policy {
	p := &Policy{}
	for i, name := range paths {
		p.FS.Rules = append(p.FS.Rules, Rule{Path: name, Access: a, Origin: Origin{Source: "test", Line: i + 1, Column: 1}})
	}
	return p
}

// mustTOML decodes a policy that has to be right.
func mustTOML(t testing.TB, text string) *Policy {
	t.Helper()
	p, err := Decode("p.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
