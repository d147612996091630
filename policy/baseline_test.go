package policy

import (
	"os"
	"strings"
	"testing"
)

// allRules returns the rules of a baseline, of all categories.
func (p *Policy) allRules() []Rule {
	s := p.FS.System
	return append(append(append(append([]Rule{}, s.Executable...), s.ReadOnly...), s.ReadWrite...), p.FS.Rules...)
}

// TestBaselineDocs checks that docs/policy.md names every path on Linux.
func TestBaselineDocs(t *testing.T) {
	data, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, doc, _ := strings.Cut(string(data), "\n## The baseline\n")
	for _, r := range Baseline("linux").allRules() {
		p := strings.ReplaceAll(r.Path, "${XDG_CONFIG_HOME:-~/.config}", "~/.config")
		if !strings.Contains(doc, "`"+p+"`") {
			t.Errorf("%s is not in docs/policy.md", p)
		}
	}
}

// TestBaseline checks what the baseline promises about itself.
func TestBaseline(t *testing.T) {
	for _, os := range []string{"linux", "macos"} {
		b := Baseline(os)
		if b.FS.System.Executable == nil || b.FS.System.ReadOnly == nil || b.FS.System.ReadWrite == nil {
			t.Errorf("%s: a category is missing", os)
		}
		for _, r := range b.allRules() {
			if !r.Optional || r.Origin.Source != "baseline" || r.Create {
				t.Errorf("%s: %+v", os, r)
			}
			home := !strings.HasPrefix(r.Path, "/")
			if r.Access&Write != 0 && (home || !strings.HasPrefix(r.Path, "/dev/")) {
				t.Errorf("%s: %s is writable", os, r.Path)
			}
			switch r.Path {
			case "/", "/dev", "/tmp", "/run", "/run/user", "/proc/self", "~", "~/.config", "/home", "/var", "/private/var":
				t.Errorf("%s: %s is too wide", os, r.Path)
			}
			if os == "macos" && (strings.HasPrefix(r.Path, "/etc") || strings.HasPrefix(r.Path, "/var") || strings.HasPrefix(r.Path, "/tmp")) {
				t.Errorf("macos: %s is not canonical", r.Path)
			}
		}
	}
	if b := Baseline("plan9"); len(b.allRules()) != 0 {
		t.Errorf("plan9: %+v", b)
	}
}
