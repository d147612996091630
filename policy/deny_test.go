package policy_test

import (
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// TestAnchorDenials: relative denials apply below a project's directory, too.
func TestAnchorDenials(t *testing.T) {
	p, err := policy.Decode("p.toml", []byte("fs.deny = ['a', '**/b', './c', '/d', '~/e', 'cwd/f', '$HOME/g', '$$h']\nlinux.fs.deny = ['../i']"))
	if err != nil {
		t.Fatal(err)
	}
	p.AnchorDenials("/p[1]/$x")
	var got []string
	for _, d := range append(p.FS.Deny, p.Linux.FS.Deny...) {
		got = append(got, d.Value)
	}
	want := `a /p\[1\]/$$x/**/b ./c /d ~/e cwd/f $HOME/g $$h ` +
		`/p\[1\]/$$x/a /p\[1\]/$$x/./c /p\[1\]/$$x/$$h ../i /p\[1\]/$$x/../i`
	if s := strings.Join(got, " "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
	h := hosttest.Table(map[string]string{"/p[1]/$x": "dir"})
	if _, err := resolve.Policy(p, h); err != nil {
		t.Error(err)
	}
}
