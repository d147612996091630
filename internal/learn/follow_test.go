package learn_test

import (
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zsbx/zsbx/internal/learn"
	"github.com/zsbx/zsbx/policy"
)

// TestFollowed draws trees and acts, and follows each hint: the act is then allowed, and the rule
// opens no secret, nothing above the project, and for writing nothing that is on PATH or another
// project's.
func TestFollowed(t *testing.T) {
	const project = "/home/u/code/mono"
	secrets := []string{"/home/u/.ssh/id_rsa", "/home/u/.config/gh/hosts.yml"}
	foreign := []string{"/home/u/tools/prog", "/home/u/code/theirs/run", "/home/u/.rye/shims/python",
		"/home/u/.cache/uv/x", "/home/u/.gradle/wrapper/dists/x"}
	plain := []string{"/home/u/data/a", "/home/u/data/b/c", "/srv/in/x", "/home/u/.tool/x", "/home/u/.cache/tool/x",
		project + "/lib/x", project + "/app/x", "/home/u/code/x"}
	rapid.Check(t, func(t *rapid.T) {
		files := append([]string{project + "/app/", project + "/.git/HEAD", "/home/u/code/theirs/.git/HEAD"}, secrets...)
		for _, f := range append(foreign, plain...) {
			if rapid.Bool().Draw(t, f) {
				files = append(files, f)
			}
		}
		at := rapid.SampledFrom(append(append([]string{}, files...), "/home/u/new", "/home/u/data/new", "/home/u/.tool/deep/new")).Draw(t, "at")
		if rapid.Bool().Draw(t, "its directory") {
			at = path.Dir(at)
		}
		a := rapid.SampledFrom([]policy.Access{r, r | x, r | w, r | w | x}).Draw(t, "access")
		h := hostWith(files...)
		h.Dir = project + "/app"
		now := present(t, h)
		open, _ := learn.Open(now, at, a)
		hints := []learn.Hint{open}
		_, st, exists := now.Look(at)
		if st.Mode.IsDir() || !exists {
			hints = append(hints, learn.Keep(now, []string{path.Clean(at)}))
		}
		if exists && !st.Mode.IsDir() {
			program, _ := learn.Program(now, path.Clean(at))
			hints = append(hints, program)
		}
		for i, hint := range hints {
			if hint.Flags == "" {
				continue
			}
			var more []string
			for _, rule := range hint.Policy.FS.Rules {
				if rule.Create {
					more = append(more, strings.Replace(rule.Path, "~", "/home/u", 1)+"/")
				}
			}
			made := hostWith(append(more, files...)...)
			made.Dir = h.Dir
			add := hint.Policy
			for _, n := range hint.Policy.Presets {
				p, err := policy.Preset(n.Value)
				if err != nil {
					t.Fatal(err)
				}
				add = policy.Merge(add, p)
			}
			then := present(t, made, add)
			if v := then.Allowed(path.Clean(at), a); i == 0 && !v.Allowed && len(hint.Policy.Presets) == 0 {
				t.Fatalf("%s does not allow %v of %s: %s", hint.Flags, a, at, v.Reason)
			}
			opens := func(p string, a policy.Access) bool { return then.Allowed(p, a).Allowed && !now.Allowed(p, a).Allowed }
			for _, s := range secrets {
				if opens(s, r) {
					t.Fatalf("%s opens %s", hint.Flags, s)
				}
			}
			for _, f := range foreign {
				if opens(f, w) {
					t.Fatalf("%s opens %s for writing", hint.Flags, f)
				}
			}
			if opens("/home/u/code/unseen", r) || opens("/home/u/unseen", r) {
				t.Fatalf("%s opens a directory above the project", hint.Flags)
			}
		}
	})
}
