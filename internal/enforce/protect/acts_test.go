package protect

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestActsTable: each name that is protected counts at any depth, in any case and with what is below it,
// and its group says why.
func TestActsTable(t *testing.T) {
	names := slices.Clone(reportedNames)
	for _, g := range projectGroups {
		if g.acts == "" {
			t.Errorf("%s: it is not said what happens outside", g.what)
		}
		names = append(names, g.names...)
	}
	for _, n := range gitActing {
		names = append(names, ".git/"+n, "a.git/"+n, ".git/modules/a/b/"+n, ".git/worktrees/a/"+n)
	}
	for _, n := range names {
		n = strings.Replace(n, "*", "x-y", 1)
		for _, rel := range []string{n, "a/b/c/" + n, strings.ToUpper(n), n + "/below/it"} {
			if why, is := Acts(rel); !is || why == "" {
				t.Errorf("%s does not count", rel)
			}
		}
	}
}

func TestActs(t *testing.T) {
	for rel, want := range map[string]string{
		".envrc":                       "a shell that enters this directory runs or trusts it",
		"sub/.ENVRC":                   "a shell that enters this directory runs or trusts it",
		".git":                         dotGitActs,
		"vendor/x/.git":                dotGitActs,
		".Git/Hooks/pre-commit":        hooksAct,
		".git/config":                  gitActs,
		".git/info/attributes":         gitActs,
		".git/rebase-merge/done":       gitActs,
		".git/modules/a/b/hooks/x":     hooksAct,
		".git/worktrees/w/gitdir":      gitActs,
		"mirror.git/config":            gitActs,
		"bare/HEAD":                    headActs,
		"HEAD":                         headActs,
		".jj/repo/store/git/hooks/x":   "version control takes programs or settings from it",
		".v\u017fcode/tasks.json":      "VS Code takes programs or settings from it", // a long s
		".vscode\u200b/tasks.json":     "VS Code takes programs or settings from it",
		".\ufe0fclaude/settings.json":  "Claude Code takes programs or permissions from it",
		"a/.config/mise/conf.d/x.toml": "a shell that enters this directory runs or trusts it",
		"a/.node-version":              reportedActs,
		"a\xff/.envrc":                 "a shell that enters this directory runs or trusts it",

		"":                            "",
		".":                           "",
		"README.md":                   "",
		"src/main.go":                 "",
		"package.json":                "",
		".vscode":                     "",
		".vscode/notes.txt":           "",
		".git/HEAD":                   "",
		".git/index":                  "",
		".git/objects/12/3456":        "",
		".git/refs/heads/config":      "",
		".git/logs/HEAD":              "",
		"x.git/HEAD":                  "",
		".gitignore":                  "",
		"config":                      "",
		"hooks/pre-commit":            "",
		"envrc":                       "",
		"node_modules/a/package.json": "",
		".github/workflows/ci.yml":    "",
	} {
		why, is := Acts(rel)
		if why != want || is != (want != "") {
			t.Errorf("%q: %q, %v, not %q", rel, why, is, want)
		}
	}
}

// TestActsDeeper: a path counts wherever a directory with it is moved, and whatever its bytes are.
func TestActsDeeper(t *testing.T) {
	some := []string{".envrc", ".git", "config", "hooks", "x.git", "modules", "worktrees", ".vscode", "tasks.json", "HEAD", "a"}
	part := rapid.OneOf(rapid.SampledFrom(some), rapid.StringMatching(`[^/\x00]{1,8}`))
	rapid.Check(t, func(t *rapid.T) {
		rel := strings.Join(rapid.SliceOfN(part, 1, 5).Draw(t, "parts"), "/")
		above := rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "above")
		why, is := Acts(rel)
		deeper, also := Acts(above + "/" + rel)
		if why != deeper || is != also {
			t.Fatalf("%q: %q, below %s: %q", rel, why, above, deeper)
		}
		if is && !strings.HasSuffix(rel, "HEAD") {
			if _, also := Acts(rel + "/below"); !also && !strings.HasSuffix(strings.ToLower(rel), ".git") {
				t.Fatalf("what is below %q does not count", rel)
			}
		}
	})
}

func TestLeads(t *testing.T) {
	for rel, want := range map[string]bool{
		".vscode": true, "a/.VSCode": true, ".config": true, "a/.config/mise": true, ".jj/repo/store": true,
		".git/info": true, "a/.git/objects": true, "x.git/refs": true, ".github": true,
		"src": false, "a/config": false, ".configure": false, "node_modules/.bin": false, ".gitx/a": false,
	} {
		if why, is := Leads(rel); is != want || is != (why != "") {
			t.Errorf("%s: %q, %v", rel, why, is)
		}
	}
}

func BenchmarkActs(b *testing.B) {
	for b.Loop() {
		Acts("node_modules/@babel/helper-module-transforms/lib/rewrite-live-references.js.map")
	}
}

// TestInBare: git's files count in a directory with a HEAD, whatever its name is.
func TestInBare(t *testing.T) {
	has := func(dir string) bool { return dir == "" || dir == "srv/Repo" }
	for rel, want := range map[string]bool{
		"config": true, "hooks/update": true, "srv/Repo/config": true, "srv/Repo/modules/a/b/config": true,
		"srv/config": false, "src/hooks/update": false, "srv/Repo/description": false, "readme": false,
	} {
		if why, is := InBare(rel, has); is != want || is != (why != "") {
			t.Errorf("%s: %q, %v", rel, why, is)
		}
	}
}
