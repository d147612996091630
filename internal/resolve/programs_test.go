package resolve

import (
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/internal/tables"
	"github.com/zsbx/zsbx/policy"
)

// TestReplaced: for each variable that a preset sets to a place in the project's own cache, the
// table has the place that it replaces. Coding agents' places are places of secrets; variables of
// XDG are for directories of many programs.
func TestReplaced(t *testing.T) {
	all := strings.Join(places("replaced"), " ")
	without := []string{"SBT_OPTS", "CHROME_CONFIG_HOME", "FOSSIL_HOME"} // ~/.sbt/boot is there; the others are in ~/.config and ~
	for _, s := range tables.Presets {
		p, err := policy.Preset(s.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range p.Env.Set {
			agent := s.Key("agent") != nil || strings.HasPrefix(v.Name, "XDG_")
			if strings.Contains(v.Value, "$ZSBX_CACHE") && !agent && !slices.Contains(without, v.Name) && !strings.Contains(all, "${"+v.Name+":-") {
				t.Errorf("preset %s: what does %s replace?", s.Name, v.Name)
			}
		}
	}
}

// TestOtherPrograms: writing in or above what other projects execute is recognised, and no
// other writing.
func TestOtherPrograms(t *testing.T) {
	h := hosttest.Table(map[string]string{
		"/home/u/bin/tool": "-> /home/u/src/tool/run", "/home/u/src/tool/run": "file", "/home/u/moved": "dir", "/home/u/caches/uv": "dir",
	})
	h.ReadDir = nil
	h.Env = []string{"HOME=/home/u", "PATH=/usr/bin:/home/u/bin", "GRADLE_USER_HOME=/home/u/moved"}
	others := mustResolve(t, &policy.Policy{}, h).OtherPrograms()
	for name, want := range map[string]bool{
		"/home/u/.bun/install/global/x": true, "/home/u/.cache/pypoetry/virtualenvs/x": true, "/home/u/.gradle/wrapper/dists": true,
		"/home/u/.m2/wrapper": true, "/home/u/.konan": true, "/home/u/.cache/ms-playwright": true, "/home/u/.virtualenvs/x": true,
		"/home/u/.cache/uv": true, "/home/u/.cache": true, "/home/u/moved/x": true,
		"/home/u/.cache/tool": false, "/home/u/data": false, "/home/u/caches/uv": false, "/srv/x": false,
	} {
		if got := others(name, true); (got != "") != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if why := others("/home/u/.cache/pypoetry", false); !strings.Contains(why, "/home/u/.cache/pypoetry") {
		t.Error(why)
	}
}
