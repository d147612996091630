package enforce_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/policy"
)

// repo is a shell function that makes a git directory.
const repo = `repo() { mkdir -p "$1/objects" "$1/refs" "$1/hooks" && echo ref >"$1/HEAD" && echo x >"$1/config"; }; `

// told runs a script under a plan and gives what is told of it, without the
// place's directory.
func told(t *testing.T, p *place, plan *enforce.Plan, script string) string {
	t.Helper()
	before := plan.Snapshot(host())
	if status, out := p.sh(t, plan, repo+script); status != 0 {
		t.Fatalf("%s: exit status %d: %s", script, status, out)
	}
	var out []string
	for _, c := range before.Changes() {
		what := "changed"
		if c.New {
			what = "new"
		}
		out = append(out, strings.TrimPrefix(c.Path, p.in+"/")+" "+what)
	}
	return strings.Join(out, ", ")
}

// TestNewRepositories: repositories that the command makes near the top of a
// writable tree are told, and those that were there are not.
func TestNewRepositories(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{`true`, ""},
		{`echo x >nested/.git/index; echo x >wt/file; mkdir -p new/dir; git --version >/dev/null || true`, ""},
		{`repo new/.git && echo evil >new/.git/hooks/pre-commit`, "new/.git new"},
		{`repo sub/.git`, "sub/.git new"},
		{`repo a/b/.git`, "a/b/.git new"},
		{`repo a/b/c/.git`, ""}, // too deep, as the document says
		{`mkdir new && echo "gitdir: ../evil" >new/.git`, "new/.git new"},
		{`mkdir new && ln -s ../nested/.git new/.git`, "new/.git new"},
		{`mv nested moved`, ""}, // git runs nothing in it
		{`mkdir moved && mv nested moved && mkdir moved/.git && echo evil >moved/.git/config`, "moved/.git new"},
		{`repo new`, "new new"},
		{`repo sub`, "sub changed"},
		{`repo "$PWD"`, "$IN changed"},
		{`repo .git/modules/evil`, ".git/modules/evil new"},
		{`repo .git/modules/libs/bar`, ".git/modules/libs/bar new"},
		{`mkdir -p node_modules/x && repo node_modules/x/.git`, ""},
		{`for i in $(seq 400); do : >0$i; done; repo zz/.git`, "zz/.git new"},
	} {
		t.Run(c.script, func(t *testing.T) {
			needLandlock(t, 1)
			p := repository(t)
			if got, want := told(t, p, p.plan(), c.script), strings.ReplaceAll(c.want, "$IN", p.in); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestManyRepositories: past what was looked at before the command, a
// repository counts by when its files were written.
func TestManyRepositories(t *testing.T) {
	needLandlock(t, 1)
	p := newPlace(t)
	for i := range 400 {
		dir := fmt.Sprintf("%s/d%03d", p.in, i)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	gitDir(t, p.in+"/d390/.git")
	gitDir(t, p.in+"/d391/.git")
	gitDir(t, p.in+"/d392")
	gitDir(t, p.in+"/d393")
	if status, out := p.sh(t, nil, `sleep 0.1`); status != 0 {
		t.Fatal(out)
	}
	got := told(t, p, p.plan(), `echo x >d390/.git/index; echo x >d391/.git/hooks/pre-commit.sample; echo x >>d393/config; repo d394/.git`)
	// Which of the directories were looked at before is the file system's choice.
	got = strings.ReplaceAll(got, "d394/.git new", "d394/.git changed")
	if want := "d391/.git changed, d393 changed, d394/.git changed"; got != want && got != strings.Replace(want, "d391/.git", "d391/.git/hooks", 1) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// BenchmarkChanges is what is told afterwards, in a repository of 100,000
// files.
func BenchmarkChanges(b *testing.B) {
	for _, shape := range []string{"deep", "flat", "wide"} {
		b.Run(shape, func(b *testing.B) {
			dir := b.TempDir()
			for i := range 100_000 {
				sub := map[string]string{
					"deep": fmt.Sprintf("/a%d/b%d/c%d", i%20, i/20%20, i/400%20), "flat": "", "wide": fmt.Sprintf("/a%d/b%d", i/1000, i%1000/10),
				}[shape]
				if i < 10_000 || shape == "flat" {
					if err := os.MkdirAll(dir+sub, 0o755); err != nil {
						b.Fatal(err)
					}
				}
				if err := os.WriteFile(fmt.Sprintf("%s%s/f%d", dir, sub, i), nil, 0o600); err != nil {
					if os.MkdirAll(dir+sub, 0o755) != nil {
						b.Fatal(err)
					}
				}
			}
			h, err := policy.ThisHost()
			if err != nil {
				b.Fatal(err)
			}
			id, mode := fileID(b, dir)
			r := &policy.Resolved{OS: "linux", Dir: dir, Paths: []policy.Path{{Path: dir, Mode: mode, ID: id,
				Access: policy.Read | policy.Write, Rule: policy.Rule{Path: dir, Origin: policy.Origin{Source: "--rw"}}}}}
			plan := enforce.NewPlan(r, enforce.Probe(), &h)
			b.Run("plan", func(b *testing.B) {
				for b.Loop() {
					plan = enforce.NewPlan(r, enforce.Probe(), &h)
				}
			})
			before := plan.Snapshot(&h)
			b.Run("after", func(b *testing.B) {
				for b.Loop() {
					if c := before.Changes(); slices.ContainsFunc(c, func(c enforce.Change) bool { return c.New }) {
						b.Fatal(c)
					}
				}
			})
		})
	}
}
