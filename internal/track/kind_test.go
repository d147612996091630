package track

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestChoose(t *testing.T) {
	linux := func(abi int, group string, manager bool) caps {
		c := caps{os: "linux", group: group}
		if abi < 6 {
			c.noDomain = "this kernel is too old"
		}
		if group == "" && manager {
			c.group = scope
		} else if group == "" {
			c.noGroup = "not writable"
		}
		return c
	}
	for _, tt := range []struct {
		name   string
		caps   caps
		want   Kind
		scoped bool
		kind   Kind // "" for an error
		scope  bool
	}{
		{"newest kernel", linux(10, "/g", true), Auto, true, Domain, false},
		{"Linux 6.12 in a container", linux(6, "", false), Auto, true, Domain, false},
		{"only tracked", linux(7, "/g", true), Auto, false, Cgroup, false},
		{"only tracked, login session", linux(7, "", true), Auto, false, Cgroup, true},
		{"only tracked, container", linux(7, "", false), Auto, false, Subtree, false},
		{"Debian 12, login session", linux(2, "", true), Auto, true, Cgroup, true},
		{"Debian 12, container", linux(2, "", false), Auto, true, Subtree, false},
		{"Linux 5.10", linux(0, "", true), Auto, true, Cgroup, true},
		{"macOS", caps{os: "darwin"}, Auto, true, Fingerprint, false},
		{"macOS without Seatbelt", caps{os: "darwin", noSeatbelt: "nested"}, Auto, true, "", false},
		{"domain by name", linux(6, "", false), Domain, true, Domain, false},
		{"domain by name, too old", linux(5, "/g", true), Domain, true, "", false},
		{"domain by name, only tracked", linux(7, "/g", true), Domain, false, "", false},
		{"cgroup by name", linux(7, "/g", true), Cgroup, true, Cgroup, false},
		{"cgroup by name, none", linux(7, "", false), Cgroup, true, "", false},
		{"subtree by name", linux(7, "/g", true), Subtree, true, Subtree, false},
		{"domain on macOS", caps{os: "darwin"}, Domain, true, "", false},
		{"cgroup on macOS", caps{os: "darwin"}, Cgroup, true, "", false},
		{"fingerprint on Linux", linux(7, "/g", true), Fingerprint, true, "", false},
		{"no such tracker", linux(7, "/g", true), "x", true, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := tt.caps.choose(Options{Tracker: tt.want, Scoped: tt.scoped})
			if tt.kind == "" {
				var te *TrackerError
				if !errors.As(err, &te) || te.Kind != tt.want && tt.want != Auto || te.Why == "" || te.Hint != "" && te.Hint != "--track auto" && te.Hint != "--track cgroup" { // the command line knows these
					t.Fatalf("%+v, %v", c, err)
				}
				return
			}
			if err != nil || c.Kind != tt.kind || c.Scope != tt.scope {
				t.Fatalf("%+v, %v", c, err)
			}
		})
	}
}

// strength orders the trackers of one system.
func strength(k Kind) int {
	switch k {
	case Domain, Fingerprint:
		return 3
	case Cgroup:
		return 2
	case Subtree:
		return 1
	}
	return 0
}

// TestChooseProperties: asking for a tracker by name returns that one or an error. auto always
// finds one, never gets a weaker one on a machine that offers more, and says why each stronger
// one was not chosen. A command that is only tracked never gets a domain.
func TestChooseProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		missing := rapid.SampledFrom([]string{"", "it is missing"})
		c := caps{
			os:         rapid.SampledFrom([]string{"linux", "darwin"}).Draw(t, "os"),
			group:      rapid.SampledFrom([]string{scope, "/g"}).Draw(t, "group"),
			noDomain:   missing.Draw(t, "domain"),
			noGroup:    missing.Draw(t, "no group"),
			noSeatbelt: missing.Draw(t, "seatbelt"),
		}
		scoped := rapid.Bool().Draw(t, "scoped")
		auto, err := c.choose(Options{Tracker: Auto, Scoped: scoped})
		if err != nil {
			if c.os == "darwin" && c.noSeatbelt != "" {
				return
			}
			t.Fatal(err)
		}
		if !scoped && auto.Kind == Domain {
			t.Fatal("a command that is only tracked was put into a domain")
		}
		for _, k := range []Kind{Domain, Fingerprint, Cgroup, Subtree} {
			stronger := (k == Fingerprint) == (c.os == "darwin") && strength(k) > strength(auto.Kind)
			if strings.Contains("; "+auto.Why, "; "+string(k)+": ") != stronger {
				t.Fatalf("chose %s, and of %s says %q", auto.Kind, k, auto.Why)
			}
			ch, err := c.choose(Options{Tracker: k, Scoped: scoped})
			if err == nil && ch.Kind != k {
				t.Fatalf("asked for %s, got %s", k, ch.Kind)
			}
			if err == nil && strength(k) > strength(auto.Kind) {
				t.Fatalf("auto took %s though %s can be had", auto.Kind, k)
			}
		}
		more := c
		more.noDomain, more.noGroup = "", ""
		if better, err := more.choose(Options{Tracker: Auto, Scoped: scoped}); err != nil || strength(better.Kind) < strength(auto.Kind) {
			t.Fatalf("with more than %s: %s, %v", auto.Kind, better.Kind, err)
		}
	})
}
