package fingerprint

import (
	"regexp"
	"testing"
)

// TestFold: every spelling that a macOS volume treats as the same name matches, with all below
// it. Other names do not.
func TestFold(t *testing.T) {
	for path, c := range map[string]struct{ same, others []string }{
		"/p/.git/config.worktree": {
			[]string{"/p/.git/config.worktree", "/P/.GIT/Config.Worktree", "/p/.git/conﬁg.worktree", "/p/.git/config.wor\u212atree", "/p/.git/config.worktree/x"},
			[]string{"/p/.git/config-worktree", "/p/.git/config.worktrees", "/p/.git/config", "/q/p/.git/config.worktree", "/p/.git/日本"},
		},
		"/ü/assist": {
			[]string{"/ü/Aßist", "/Ü/aſsiſt", "/ü/assiﬆ", "/ü/asſist"},
			[]string{"/ü/asist", "/ü/assis"},
		},
		"/ü/fluff": {[]string{"/ü/ﬂuﬀ", "/Ü/FLUFF"}, []string{"/ü/luff", "/ü/flu"}},
		"/a+b/(x)": {[]string{"/A+B/(X)"}, []string{"/aab/x", "/a+b/x"}},
	} {
		re := regexp.MustCompile(Fold(path))
		for _, s := range c.same {
			if !re.MatchString(s) {
				t.Errorf("%s: %q is another name for %s", path, s, re)
			}
		}
		for _, s := range c.others {
			if re.MatchString(s) {
				t.Errorf("%s: %q is the same name for %s", path, s, re)
			}
		}
	}
}
