package review

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/gitconfig"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/internal/layer"
)

// memory has the files of a layer and of its tree; a link is its target.
type memory struct {
	is, was map[string]string
	links   []string // of the tree
	repos   []string // of the tree
	user    []gitconfig.Setting
	many    bool // not all of its links are known
}

func (m memory) side(old bool) map[string]string {
	if old {
		return m.was
	}
	return m.is
}

func (m memory) Text(_ int, rel string, old bool) ([]byte, error) {
	text, ok := m.side(old)[rel]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

func (m memory) Link(_ int, rel string, old bool) (string, error) {
	if old && !slices.Contains(m.links, rel) {
		return "", fs.ErrInvalid
	}
	text, err := m.Text(0, rel, old)
	return string(text), err
}

func (m memory) Find(int) (Found, bool) { return Found{m.links, m.repos}, !m.many }

func (m memory) Close() {}

// reviewed makes a review of changes in trees.
func reviewed(m memory, changes []layer.Change, trees ...string) *Review {
	l := &layer.Record{}
	for _, tree := range trees {
		l.Trees = append(l.Trees, layer.Tree{Path: tree})
	}
	h := nowhere()
	h.Home = "/t/me"
	return New(l, changes, m, h, m.user)
}

func (m memory) Type(_ int, rel string) (fs.FileMode, error) {
	if slices.Contains(m.links, rel) {
		return fs.ModeSymlink, nil
	}
	if m.was[rel] != "" {
		return 0, nil
	}
	for _, side := range []map[string]string{m.is, m.was} {
		for name := range side {
			if strings.HasPrefix(name, rel+"/") {
				return fs.ModeDir, nil
			}
		}
	}
	return 0, fs.ErrNotExist
}

// added, changed and removed make changes.
func added(rel string, mode fs.FileMode, size int64) layer.Change {
	return layer.Change{Path: rel, Op: layer.Add, Type: mode, Size: size}
}

func changedFile(rel string, mode, was fs.FileMode) layer.Change {
	return layer.Change{Path: rel, Op: layer.Modify, Type: mode, Was: &layer.State{Mode: was}}
}

func removed(rel string, was fs.FileMode) layer.Change {
	return layer.Change{Path: rel, Op: layer.Remove, Was: &layer.State{Mode: was}}
}

const dirMode, linkMode = fs.ModeDir | 0o755, fs.ModeSymlink | 0o777

// sorted sorts changes as a layer does.
func sorted(all []layer.Change) []layer.Change {
	slices.SortStableFunc(all, func(x, y layer.Change) int {
		return slices.Compare(strings.Split(x.Path, "/"), strings.Split(y.Path, "/"))
	})
	return all
}

// npm is a layer as npm install leaves one, with one thing that it should not have done.
func npm() ([]layer.Change, memory) {
	m := memory{
		is:  map[string]string{"package.json": "{\n  \"a\": 1,\n  \"b\": 2\n}\n", ".envrc": "PATH_add .\n"},
		was: map[string]string{"package.json": "{\n  \"a\": 1\n}\n"},
	}
	all := []layer.Change{
		changedFile("package.json", 0o644, 0o644), added(".envrc", 0o644, 11),
		added("node_modules", dirMode, 0), added("node_modules/.bin", dirMode, 0),
	}
	for i := range 41 {
		name := fmt.Sprintf("tool%02d", i)
		all = append(all, added("node_modules/.bin/"+name, linkMode, 0))
		m.is["node_modules/.bin/"+name] = "../" + name + "/cli.js"
		all = append(all, added("node_modules/"+name, dirMode, 0))
		for j := range 20 {
			all = append(all, added(fmt.Sprintf("node_modules/%s/f%d.js", name, j), 0o644|fs.FileMode(j/19*0o111), 1000))
		}
	}
	return sorted(all), m
}

func TestSummaryNpm(t *testing.T) {
	changes, m := npm()
	const dir = "/home/me/p"
	h := nowhere()
	h.Dir = dir
	r := New(&layer.Record{Trees: []layer.Tree{{Path: dir}}}, changes, m, h, nil)
	const want = `862 files and 43 directories would be added, 1 changed, 0 removed below ./; 1 needs a look
  + .envrc               a shell that enters this directory runs or trusts it
  ~ package.json         +2 -1
  + node_modules/.bin/…  41 programs
  + node_modules/        820 files, 41 programs, 801 KiB
`
	if got := r.Summary(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	const list = `862 files and 43 directories would be added, 1 changed, 0 removed below ./; 1 needs a look
  + .envrc         a shell that enters this directory runs or trusts it
  + node_modules/  861 files, 82 programs, 801 KiB
  ~ package.json   +2 -1
`
	if got := r.List(); got != list {
		t.Errorf("got\n%swant\n%s", got, list)
	}
	const diff = `--- a/package.json
+++ b/package.json
@@ -1,3 +1,4 @@
 {
-  "a": 1
+  "a": 1,
+  "b": 2
 }
`
	var b strings.Builder
	if err := r.Part(func(c *layer.Change) bool { return c.Path == "package.json" }).Diff(&b); err != nil || b.String() != diff {
		t.Errorf("%v, got\n%swant\n%s", err, b.String(), diff)
	}
}

// TestDenied: what has a name that was denied needs a look.
func TestDenied(t *testing.T) {
	changes := []layer.Change{added("a.pem", 0o644, 1), added("d/b.pem", 0o644, 1), added("d/no/x", 0o644, 1), added("d/nothing", 0o644, 1)}
	l := &layer.Record{Trees: []layer.Tree{{Path: "/t"}}, Denied: []string{"/t/**/*.pem", "/t/d/no"}}
	r := New(l, changes, memory{}, nowhere(), nil)
	for i, want := range []int{1, 1, 1, 0} {
		if got := r.Looks(i); len(got) != want || want > 0 && got[0].Kind != Denied {
			t.Errorf("%s: %v", changes[i].Path, got)
		}
	}
}

// TestOtherNames: a file counts by the names that links of the tree give it, also by way of others, and by those that
// the command took away: people may refuse that. The control: a name that is only like them.
func TestOtherNames(t *testing.T) {
	m := memory{was: map[string]string{
		".vscode": "conf/code", "deep/.vscode": "../shared", ".envrc": "env/rc", "plain": "conf", ".git/hooks": "../hk",
		".claude": "agents", "agents/commands": "../cmds", "gone/.vscode": "../kept", "both/.idea": "/u/idea", "out/.vscode": "../../x",
	}}
	for name := range m.was {
		m.links = append(m.links, name)
	}
	for rel, want := range map[string]string{
		"conf/code/tasks.json": "VS Code takes programs or settings from it as .vscode/tasks.json",
		"shared/tasks.json":    "VS Code takes programs or settings from it as deep/.vscode/tasks.json",
		"shared/notes.txt":     "",
		"conf/tasks.json":      "",
		"env/rc":               "a shell that enters this directory runs or trusts it as .envrc",
		"env/other":            "",
		"hk/pre-commit":        "git runs it as .git/hooks/pre-commit",
		"cmds/x.md":            "Claude Code takes programs or permissions from it as .claude/commands/x.md",
		"kept/tasks.json":      "VS Code takes programs or settings from it as gone/.vscode/tasks.json",
		"x/tasks.json":         "",
	} {
		changes := []layer.Change{removed("gone/.vscode", linkMode), added(rel, 0o644, 1)}
		r := reviewed(m, changes, "/t", "/u")
		got := ""
		if looks := r.Looks(1); looks != nil {
			got = looks[0].Why
		}
		if got != want {
			t.Errorf("%s: %q, not %q", rel, got, want)
		}
	}
	other := added("idea/workspace.xml", 0o644, 1)
	other.Tree = 1
	r := reviewed(m, []layer.Change{added("a", 0o644, 1), other}, "/t", "/u")
	if looks := r.Looks(1); len(looks) != 1 || !strings.HasSuffix(looks[0].Why, " as both/.idea/workspace.xml") {
		t.Errorf("in another tree: %v", looks)
	}
}

// TestWay: a change of any link on the way to what programs outside run needs a look, or of what takes its place or
// that of a directory. The control: what is beside the way.
func TestWay(t *testing.T) {
	m := memory{
		was: map[string]string{
			"sub/.envrc": "../conf/current", "conf/current": "dev", "conf/dev": "rc", "conf/unused": "dev", "conf/other": "rc",
			"p/.vscode": "../by/code", "by": "far", "far/code/notes.txt": "x", "gap/.vscode": "../none/code",
			"repo/.git/config": "[core]\nhooksPath = tools/hooks\n[include]\npath = ../inc/more\n",
			"repo/tools":       "../t1", "t1/hooks/pre-commit": "x", "t2/hooks/pre-commit": "x", "repo/inc": "../i1", "i1/more": "#",
			"main/.git": "gitdir: ../ln/store\n", "ln": "stores",
		},
		is:    map[string]string{},
		links: []string{"sub/.envrc", "conf/current", "conf/unused", "p/.vscode", "by", "gap/.vscode", "repo/tools", "repo/inc", "ln"},
		repos: []string{"repo/.git", "main/.git"},
	}
	const shell = "a shell that enters this directory runs or trusts it as sub/.envrc"
	const code = "VS Code takes programs or settings from it as p/.vscode"
	for _, c := range []struct {
		change layer.Change
		to     string // of a link
		want   string
	}{
		{changedFile("conf/current", linkMode, linkMode), "other", shell},
		{changedFile("conf/current", 0o644, linkMode), "", shell},
		{changedFile("conf/current", dirMode, linkMode), "", shell},
		{removed("conf/current", linkMode), "", shell},
		{changedFile("conf", linkMode, dirMode), "else", shell},
		{changedFile("conf/dev", linkMode, 0o644), "other", shell},
		{changedFile("conf/dev", 0o644, 0o644), "", shell},
		{changedFile("conf/other", 0o644, 0o644), "", ""},
		{changedFile("conf/unused", linkMode, linkMode), "other", ""},
		{changedFile("by", linkMode, linkMode), "near", code},
		{changedFile("by", dirMode, linkMode), "", code},
		{removed("by", linkMode), "", code},
		{changedFile("far", linkMode, dirMode), "conf", code},
		{changedFile("far/code", linkMode, dirMode), "../conf", code},
		{added("far/code/new", dirMode, 0), "", ""},
		{added("far/tasks.json", 0o644, 0), "", ""},
		{added("far/link", linkMode, 0), "../conf", ""},
		{added("none", linkMode, 0), "conf", "VS Code takes programs or settings from it as gap/.vscode"},
		{changedFile("repo/tools", linkMode, linkMode), "../t2", trusted},
		{changedFile("repo/tools", dirMode, linkMode), "", trusted},
		{changedFile("t1", linkMode, dirMode), "t2", trusted},
		{changedFile("t2/hooks/pre-commit", 0o644, 0o644), "", ""},
		{added("t1/notes", 0o644, 0), "", ""},
		{changedFile("repo/inc", linkMode, linkMode), "../i2", trusted},
		{changedFile("ln", linkMode, linkMode), "mine", trusted},
	} {
		m.is = map[string]string{c.change.Path: c.to}
		r := reviewed(m, []layer.Change{c.change}, "/t")
		got := ""
		if looks := r.Looks(0); looks != nil {
			got = looks[0].Why
		}
		if got != c.want {
			t.Errorf("%s %s to %q: %q, not %q", c.change.Op, c.change.Path, c.to, got, c.want)
		}
	}
}

// TestAlias: links and settings may name a tree by a path outside that leads to it. The control is a path that leads
// elsewhere. What can't be looked at leaves unknown where it leads.
func TestAlias(t *testing.T) {
	h := hosttest.Table(map[string]string{
		"/home": "-> /data/home", "/opt/here": "-> /home/me/w/", "/data/home/me/v": "dir", "/locked": "locked",
	})
	h.Home = "/home/me"
	change := []layer.Change{added("d/x", 0o644, 1), added("e/x", 0o644, 1)}
	for to, want := range map[string]int{
		"/home/me/w/d": 1, "/data/home/me/w/d": 1, "/opt/here/d": 1, "../../../../opt/here/d": 1, "~/w/d": 1,
		"/home/me/w/../w/d": 1, "/home/me/v/d": 0, "/opt/d": 0, "/home/me/wd": 0, "/none/d": 0, "/locked/d": 2,
	} {
		link := memory{was: map[string]string{".agents": to}, links: []string{".agents"}}
		git := memory{was: map[string]string{".git/config": "[core]\nhooksPath = " + to + "\n"}, repos: []string{".git"}}
		user := memory{user: []gitconfig.Setting{{Section: "core", Key: "hookspath", Value: to, Older: to}}}
		for name, m := range map[string]memory{"link": link, "setting": git, "user's setting": user} {
			if name == "link" && to[0] == '~' || name != "link" && to[0] == '.' {
				continue
			}
			r := New(&layer.Record{Trees: []layer.Tree{{Path: "/data/home/me/w"}}}, change, m, &h, m.user)
			if got := r.needing(); got != want || want == 1 && r.Looks(0) == nil {
				t.Errorf("%s to %s: %d need a look, not %d:\n%s", name, to, got, want, r.List())
			}
		}
	}
}

// TestLongWays: a loop, and more links than the kernel follows, leave unknown where they lead. Many links that lead
// to each other, and long ones, don't keep a review busy. The control is as many links as are followed.
func TestLongWays(t *testing.T) {
	change := []layer.Change{added("x", 0o644, 1)}
	chain := func(n int, last string) (m memory) {
		m.was = map[string]string{".agents": "l1", fmt.Sprintf("l%d", n): last}
		m.links = []string{".agents", fmt.Sprintf("l%d", n)}
		for i := 1; i < n; i++ {
			link := fmt.Sprintf("l%d", i)
			m.was[link] = fmt.Sprintf("l%d", i+1)
			m.links = append(m.links, link)
		}
		return m
	}
	wide := memory{was: map[string]string{}}
	for i := range 300 {
		for to, name := range []string{"a%d/x.git", "b/%d", "c/%d", "d/%d"} {
			link := fmt.Sprintf(name, i)
			wide.was[link] = "../" + string("bcde"[to])
			wide.links = append(wide.links, link)
		}
	}
	long := memory{was: map[string]string{}}
	for i := range 300 {
		link := fmt.Sprintf("%d/.agents", i)
		long.was[link] = strings.Repeat("none/", 800)
		long.links = append(long.links, link)
	}
	for name, c := range map[string]struct {
		memory
		known bool
	}{
		"loop": {chain(3, "l1"), false}, "39 links": {chain(39, "y"), true}, "41 links": {chain(41, "y"), false},
		"wide": {wide, false}, "long": {long, false},
	} {
		r := reviewed(c.memory, change, "/t")
		if r.Clean() != c.known {
			t.Errorf("%s: %s", name, r.List())
		}
	}
}

// TestTreeActs: a tree may itself be in a directory that programs outside know. Each pair ends with its control.
func TestTreeActs(t *testing.T) {
	h := nowhere()
	h.Lstat = func(p string) (host.Stat, error) {
		if p == "/srv/repo/HEAD" {
			return host.Stat{}, nil
		}
		return host.Stat{}, fs.ErrNotExist
	}
	m := memory{was: map[string]string{"rc": "rc.real", "tasks.json": "mine"}, links: []string{"rc", "tasks.json"}}
	for _, c := range []struct {
		tree   string
		change layer.Change
		want   []Kind
	}{
		{"/p/.git/hooks", added("pre-commit", 0o755, 1), []Kind{Acts}},
		{"/p/hooks", added("pre-commit", 0o755, 1), nil},
		{"/p/.vscode", added("tasks.json", 0o644, 1), []Kind{Acts}},
		{"/p/.vscode", added("notes.txt", 0o644, 1), nil},
		{"/p/.claude", added("settings.json", 0o644, 1), []Kind{Acts}},
		{"/p/.vscode", added("mine", 0o644, 1), []Kind{Acts}}, // a link leads to it
		{"/p/code", added("mine", 0o644, 1), nil},
		{"/p/.jj", added("repo", linkMode, 1), []Kind{Acts, Leaves}},
		{"/p/jj", added("repo", linkMode, 1), []Kind{Leaves}},
		{"/srv/repo/hooks", added("update", 0o755, 1), []Kind{Acts}}, // of a bare repository
		{"/srv/src/hooks", added("update", 0o755, 1), nil},
		{"/p/venv/bin", changedFile("python", linkMode, linkMode), []Kind{Replaces, Leaves}},
		{"/p/venv/lib", changedFile("python", linkMode, linkMode), []Kind{Leaves}},
		{"/home/me/.config/foo", added("settings.json", 0o644, 1), nil},
		{"/home/me/.local/share/foo", added("data/x", 0o644, 1), nil},
	} {
		r := New(&layer.Record{Trees: []layer.Tree{{Path: c.tree}}}, []layer.Change{c.change}, m, h, nil)
		var got []Kind
		for _, l := range r.Looks(0) {
			got = append(got, l.Kind)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s in %s: %v, not %v", c.change.Path, c.tree, got, c.want)
		}
	}
}

// TestGitSettings: what the settings of a repository name needs a look, whether the repository was there before or
// the command made it. The control: what no setting names, and other repositories' names.
func TestGitSettings(t *testing.T) {
	const hooks = "[core]\nhooksPath = "
	m := memory{
		was: map[string]string{
			"old/deep/.git/config": hooks + "tools/hooks\n[include]\npath = more\n", "old/deep/.git/more": "[core]\nfsmonitor = bin/watch\n",
			"old/deep/tools/hooks/other":  "../../script",
			"super/.git/modules/s/config": hooks + "sh\n", "super/s/.git": "gitdir: ../.git/modules/s\n",
			"main/.git/config": hooks + "mh\n", "main/.git/worktrees/w/commondir": "../..\n",
			"w/.git": "gitdir: /t/main/.git/worktrees/w\n", "changed/.git/config": hooks + "before\n",
			"moved/.git/config": "[core]\nworktree = ../../away\n" + hooks + "hooks\n",
		},
		is: map[string]string{
			"new/.git/config": hooks + "own\n", "all/.git/config": hooks + ".\n", "b.git/config": hooks + "mine\n",
			"changed/.git/config": hooks + "after\n", "led/.git/config": hooks + "way/to\n", "led/way": "../far",
			"husky/.git/config": hooks + ".husky/_\n", "home/.git/config": hooks + "~/h\n", "out/.git/config": hooks + "/u/hooks\n",
			"inc/.git/config": "[include]\npath = ~/extra\n", "me/extra": "[core]\nsshCommand = ssh\n" + hooks + "hk\n",
			"top/.git/config": "[core]\nfsmonitor = \"$(git rev-parse --show-toplevel)/tools/fs\"\n",
			"var/.git/config": "[core]\nfsmonitor = $TOP/tools/fs one/two\n",
		},
		user: []gitconfig.Setting{
			{Section: "core", Key: "hookspath", Value: "every", Older: "every"},
			{Section: "init", Key: "templatedir", Value: "~/template", Older: "~/template"},
			{Section: "include", Key: "path", Value: "~/mine", Older: "~/mine"},
			{Section: "diff", Key: "textconv", Value: "jq -S . ..", Older: "jq -S . .."},
			{Section: "core", Key: "editor", Value: "code --wait", Older: "code --wait"},
			{Section: "gc", Key: "recentobjectshook", Value: "./recent", Older: "./recent"},
			{Section: "gc", Key: "logexpiry", Value: "./expiry", Older: "./expiry"},
		},
		repos: []string{"old/deep/.git", "super/s/.git", "super/.git", "main/.git", "w/.git", "moved/.git"},
		links: []string{"old/deep/tools/hooks/other"},
	}
	base := []layer.Change{added("led/way", linkMode, 0)}
	for name := range m.is {
		if name != "led/way" {
			base = append(base, added(name, 0o644, 1))
		}
	}
	for rel, want := range map[string]string{
		"old/deep/tools/hooks/pre-commit": trusted,
		"old/deep/bin/watch":              trusted,
		"old/deep/script":                 trusted + " as old/deep/tools/hooks/other",
		"old/deep/tools/hooks/other":      trusted,
		"old/tools/hooks/pre-commit":      "",
		"old/deep/tools/pre-commit":       "",
		"super/s/sh/pre-push":             trusted,
		"super/sh/pre-push":               "",
		"main/mh/x":                       trusted,
		"w/mh/x":                          trusted,
		"changed/before/x":                trusted,
		"changed/after/x":                 trusted,
		"away/hooks/x":                    trusted,
		"new/own/pre-commit":              trusted,
		"new/own":                         trusted,
		"new/other":                       "",
		"all/pre-commit":                  trusted,
		"all/main.go":                     "",
		"b.git/mine/update":               trusted,
		"far/to/x":                        trusted,
		"far/x":                           "",
		"husky/.husky/pre-commit":         trusted,
		"home/h/x":                        "",
		"me/h/x":                          trusted,
		"me/other/x":                      "",
		"me/extra":                        trusted,
		"me/mine":                         trusted,
		"me/template/hooks/pre-commit":    trusted,
		"inc/hk/x":                        trusted,
		"inc/extra":                       "",
		"top/tools/fs":                    trusted,
		"top/fs":                          "",
		"var/tools/fs":                    trusted,
		"var/one/two":                     trusted,
		"var/two":                         "",
		"new/every/pre-commit":            trusted,
		"old/deep/every/pre-commit":       trusted,
		"new/recent":                      trusted,
		"new/expiry":                      "",
		"new/code/main.go":                "", // the editor is on PATH
		"every/pre-commit":                "", // no repository has it at its top
		"u/hooks/x":                       "",
	} {
		r := reviewed(m, append(base, added(rel, 0o755, 1)), "/t")
		got := ""
		if looks := r.Looks(len(base)); looks != nil {
			got = looks[0].Why
		}
		if got != want {
			t.Errorf("%s: %q, not %q", rel, got, want)
		}
	}
}

// TestSettingsOutside: the repository of a working tree, and what its settings include, may be outside. The control:
// what no setting names, and a working tree of another repository.
func TestSettingsOutside(t *testing.T) {
	m := memory{
		was:   map[string]string{"a/w/.git": "gitdir: /m/.git/worktrees/w\n", "b/w/.git": "gitdir: /none\n"},
		repos: []string{"a/w/.git", "b/w/.git"},
	}
	outside := map[string]string{
		"/m/.git/worktrees/w/commondir": "../..\n",
		"/m/.git/config":                "[include]\npath = ../more\n",
		"/m/more":                       "[core]\nhooksPath = tools\n",
	}
	h := nowhere()
	h.Lstat = func(p string) (host.Stat, error) {
		_, is := outside[p]
		if !is {
			return host.Stat{}, fs.ErrNotExist
		}
		return host.Stat{}, nil
	}
	h.ReadFile = func(p string) ([]byte, error) { return []byte(outside[p]), nil }
	all := []layer.Change{
		added("a/w/tools/pre-commit", 0o755, 1), added("a/w/other", 0o644, 1), added("b/w/tools/pre-commit", 0o755, 1),
	}
	r := New(&layer.Record{Trees: []layer.Tree{{Path: "/t"}}}, all, m, h, nil)
	for i := range all {
		if looks := r.Looks(i); (len(looks) == 1 && looks[0].Why == trusted) != (i == 0) {
			t.Errorf("%s: %v", all[i].Path, looks)
		}
	}
}

// TestManySettings: a command can't keep a review busy with settings. What more of them may name needs a look.
func TestManySettings(t *testing.T) {
	m := memory{is: map[string]string{
		"names/.git/config": "[core]\n" + strings.Repeat("fsmonitor = a/b\n", maxText/16-1),
		"line/.git/config":  "[core]\nfsmonitor = \"" + strings.Repeat("$ a/b ", maxText/8) + "\"\n",
		"big/.git/config":   strings.Repeat("#", maxText+1),
	}}
	for name := range m.is {
		r := reviewed(m, []layer.Change{added(name, 0o644, 1), added("x", 0o644, 1)}, "/t")
		if looks := r.Looks(1); len(looks) != 1 || !strings.HasPrefix(looks[0].Why, "not all links and git settings") {
			t.Errorf("%s: %v", name, looks)
		}
	}
}

// TestLooks: each kind of change that needs a look, and its neighbour that needs none.
func TestLooks(t *testing.T) {
	m := memory{
		is: map[string]string{
			"in": "sub/../a", "up": "../../etc", "abs": "/etc/passwd", "own": "/t/a", "other": "/tt/a",
			"via": "out/x", "loop": "loop", "dots": "sub/back/../..", "sub/back": "..", "vs/.vscode": "../x",
			"tool": "a", "venv/bin/python": "../../a", "venv/lib64": "lib", "text": "a",
		},
		was:   map[string]string{"out": "/usr", "HEAD": "ref", "repo/HEAD": "ref"},
		links: []string{"out"},
	}
	conflict := changedFile("conflict", 0o644, 0o644)
	conflict.Conflict = "the tree has another file there"
	refused := added("node", fs.ModeDevice, 0)
	refused.Refused = "a device"
	foreign := added("given", 0o644, 1)
	foreign.Foreign = "its owner is another user"
	for _, c := range []struct {
		change layer.Change
		want   []Kind
	}{
		{added("a", 0o644, 1), nil},
		{added("run", 0o755, 1), nil},
		{added("sub", dirMode, 0), nil},
		{conflict, []Kind{Conflict}},
		{refused, []Kind{Refused}},
		{added("x/.envrc", 0o644, 1), []Kind{Acts}},
		{removed("x/.envrc", 0o644), []Kind{Acts}},
		{added("x/.git", dirMode, 0), nil},
		{added("x/.git", 0o644, 0), []Kind{Acts}},
		{changedFile("x/.git", 0o644, dirMode), []Kind{Acts}},
		{added("x/.vscode", dirMode, 0), nil},
		{added("vs/.vscode", linkMode, 0), []Kind{Acts}},
		{added("config", 0o644, 0), []Kind{Acts}}, // the top is a bare repository
		{added("repo/hooks/pre-receive", 0o755, 0), []Kind{Acts}},
		{added("src/hooks/pre-receive", 0o755, 0), nil},
		{changedFile("tool", 0o755, 0o755), []Kind{Replaces}},
		{changedFile("tool", linkMode, 0o755), []Kind{Replaces}},
		{changedFile("tool", 0o755, linkMode), []Kind{Replaces}},
		{changedFile("venv/bin/python", linkMode, linkMode), []Kind{Replaces}},
		{changedFile("venv/lib64", linkMode, linkMode), nil},
		{changedFile("text", linkMode, 0o644), nil},
		{removed("tool", 0o755), nil},
		{changedFile("tool", 0o755, 0o644), nil},
		{added("w", 0o666, 0), []Kind{Shared}},
		{added("wd", dirMode|0o777, 0), []Kind{Shared}},
		{added("wt", dirMode|fs.ModeSticky|0o777, 0), nil},
		{added("ws", fs.ModeSticky|0o666, 0), []Kind{Shared}},
		{foreign, []Kind{Foreign}},
		{added("in", linkMode, 0), nil},
		{added("own", linkMode, 0), nil},
		{added("loop", linkMode, 0), nil},
		{added("sub/back", linkMode, 0), nil},
		{added("up", linkMode, 0), []Kind{Leaves}},
		{added("abs", linkMode, 0), []Kind{Leaves}},
		{added("other", linkMode, 0), []Kind{Leaves}},
		{added("via", linkMode, 0), []Kind{Leaves}},
		{added("dots", linkMode, 0), []Kind{Leaves}},
		{added("unread", linkMode, 0), []Kind{Leaves}},
		{removed("up", linkMode), nil},
		{changedFile(".githooks/pre-commit", 0o644, 0o644), []Kind{Protected}},
	} {
		// sub/back is a link of the layer in each case.
		all := []layer.Change{c.change}
		if c.change.Path != "sub/back" {
			all = append(all, added("sub/back", linkMode, 0))
		}
		l := &layer.Record{Trees: []layer.Tree{{Path: "/t"}}, Protected: []string{"/t/.githooks"}}
		r := New(l, all, m, nowhere(), nil)
		var got []Kind
		for _, l := range r.Looks(0) {
			got = append(got, l.Kind)
			if l.Why == "" {
				t.Errorf("%s: no reason", c.change.Path)
			}
		}
		if !slices.Equal(got, c.want) || r.Clean() != (c.want == nil) {
			t.Errorf("%s %s: %v, not %v", c.change.Op, c.change.Path, got, c.want)
		}
	}
}

// TestRecordedWay: what was known at the start counts where a new link leads to it, and so does that link. The control:
// what is beside it.
func TestRecordedWay(t *testing.T) {
	m := memory{is: map[string]string{"tools": "new", "other": "new"}}
	all := []layer.Change{
		changedFile("tools", linkMode, dirMode), added("new/hooks/pre-commit", 0o755, 1),
		changedFile("other", linkMode, dirMode), added("new/more/pre-commit", 0o755, 1),
	}
	l := &layer.Record{Trees: []layer.Tree{{Path: "/t"}}, Protected: []string{"/t/tools/hooks"}}
	r := New(l, all, m, nowhere(), nil)
	for i := range all {
		if looks := r.Looks(i); (len(looks) == 1 && looks[0].Why == trusted) != (i < 2) {
			t.Errorf("%s: %v", all[i].Path, looks)
		}
	}
}

// TestReplacesByLink: a program may take the place of another by a link above it, or in the place of one. The control:
// what is not there on both sides, and what is no program.
func TestReplacesByLink(t *testing.T) {
	m := memory{
		was:   map[string]string{"sbin": "real", "real/tool": "a", "sbin2": "real", "a/bin": "../real"},
		is:    map[string]string{"bin": "new", "new/tool": "b", "a/bin": "../new"},
		links: []string{"sbin", "sbin2", "a/bin"},
	}
	all := []layer.Change{
		changedFile("a/bin", linkMode, linkMode),
		changedFile("bin", linkMode, dirMode), removed("bin/old", 0o755), removed("bin/text", 0o644),
		removed("bin/tool", 0o755), added("new", dirMode, 0), added("new/tool", 0o755, 1), added("new/text", 0o644, 1),
		changedFile("sbin", dirMode, linkMode), added("sbin/more", 0o755, 1), added("sbin/tool", 0o755, 1),
		changedFile("sbin2", dirMode, linkMode), added("sbin2/tool", 0o644, 1),
	}
	r := reviewed(m, all, "/t")
	for i := range all {
		is := slices.ContainsFunc(r.Looks(i), func(l Look) bool { return l.Kind == Replaces })
		want := slices.Contains([]string{"a/bin", "bin/tool", "sbin/tool"}, all[i].Path)
		if is != want {
			t.Errorf("%s: %v", all[i].Path, r.Looks(i))
		}
	}
}

// TestManyLinks: where not all links of a tree are known, what one may lead to needs a look. The control is a tree
// whose links are known.
func TestManyLinks(t *testing.T) {
	all := []layer.Change{added("rc", 0o644, 1)}
	if r := reviewed(memory{}, all, "/t"); !r.Clean() {
		t.Error("control:", r.Summary())
	}
	r := reviewed(memory{many: true}, all, "/t")
	if r.Clean() || !strings.Contains(r.Summary(), "not all links") {
		t.Error(r.Summary())
	}
}

// TestSummaryLong: a summary has a bound, and says how much it leaves out.
func TestSummaryLong(t *testing.T) {
	var all []layer.Change
	for i := range 30 {
		all = append(all, changedFile(fmt.Sprintf("f%02d", i), 0o600, 0o644))
	}
	all = append(all, removed("old", dirMode), removed("old/a", 0o644), removed("old/b", 0o644))
	all = append(all, removed("x", 0o644))
	all = append(all, added("new", dirMode, 0), added("w/1", 0o644, 1))
	text := reviewed(memory{}, all, "/t").Summary()
	for _, want := range []string{
		"1 file and 1 directory would be added, 30 changed, 3 files and 1 directory removed below /t\n",
		"\n  ~ f00  mode 0600, was 0644", "\n  and 15 more\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
	if strings.Count(text, "\n") != maxLines+2 {
		t.Errorf("%s", text)
	}
	text = reviewed(memory{}, all[30:], "/t").Summary()
	for _, want := range []string{"  - old/  2 files\n", "  - x     file, 0 bytes\n", "  + new/  directory\n", "  + w/1   file, 1 byte\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
}

// TestNames: a name leads a command line in the working directory to what it names. The controls are in the tree itself.
func TestNames(t *testing.T) {
	one := []string{"/p/t"}
	two := []string{"/p/t", "/p/u"}
	for _, c := range []struct {
		dir   string
		trees []string
		tree  int
		rel   string
		want  string
	}{
		{"/p/t", one, 0, "d/x", "d/x"},
		{"/p/t", one, 0, ".", "."},
		{"/p/t/d", one, 0, "d/x", "x"},
		{"/p/t/d", one, 0, "x", "../x"},
		{"/p/t/d", one, 0, ".", ".."},
		{"/p", one, 0, "t/x", "t/t/x"}, // t/x is another one
		{"/q", one, 0, "d/x", "d/x"},
		{"/", one, 0, "x", "/p/t/x"},
		{"/p/t", two, 0, "x", "x"},
		{"/p/t", two, 1, "x", "/p/u/x"},
		{"/p", two, 1, "x", "u/x"},
		{"/q", two, 1, "x", "/p/u/x"},
		{"/p/t", one, 0, "--undo", "./--undo"}, // no flag
		{"/q", one, 0, "~/.bashrc", "./~/.bashrc"},
		{"/p/t", one, 0, "#x", "./#x"},
		{"/p/t", one, 0, "x-~#", "x-~#"},
		{"/p/t/d", one, 0, "-x", "../-x"},
		{"/p", []string{""}, 0, "d/x", "d/x"}, // its record is damaged
	} {
		if got := NameFrom(c.dir, c.trees, c.tree, c.rel); got != c.want {
			t.Errorf("%s of %s in %s: %s, not %s", c.rel, c.trees[c.tree], c.dir, got, c.want)
		}
	}
}

// TestSharesShown: a directory in which others may write what is made there is not told as other attributes are, and
// needs a look.
func TestSharesShown(t *testing.T) {
	for shares, want := range map[bool]string{
		true: "  ~ d/  default ACL; others may write what is made in it\n", false: "  ~ d/  times or attributes\n",
	} {
		c := changedFile("d", dirMode, dirMode)
		c.Shares = shares
		r := reviewed(memory{}, []layer.Change{c}, "/t")
		if !strings.HasSuffix(r.Summary(), want) || !strings.HasSuffix(r.List(), want) {
			t.Errorf("%s%s, not %q", r.Summary(), r.List(), want)
		}
		if r.Clean() == shares {
			t.Errorf("default ACL %t: nothing needs a look: %t", shares, r.Clean())
		}
	}
}

// TestListOnce: every change is listed once, first what needs a look, of all trees.
func TestListOnce(t *testing.T) {
	all := []layer.Change{
		added("d", dirMode, 0), added("d/.envrc", 0o644, 3), added("d/x", 0o644, 3), changedFile("z", 0o755, 0o644),
		removed("e", dirMode), removed("e/.git", dirMode), removed("e/f", 0o644), added("new", 0o755, 7),
	}
	for i := range all {
		all[i].Tree = i / 4
	}
	const want = `3 files and 1 directory would be added, 1 changed, 1 file and 2 directories removed below /t and /u; 1 needs a look
  + /t/d/.envrc  a shell that enters this directory runs or trusts it
  + /t/d/        1 file, 3 bytes
  ~ /t/z         mode 0755, was 0644
  - /u/e/        1 file
  + /u/new       program, 7 bytes
`
	m := memory{is: map[string]string{"z": "same"}, was: map[string]string{"z": "same"}}
	if got := reviewed(m, all, "/t", "/u").List(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := reviewed(memory{}, nil, "/t").List(); got != "nothing is left to apply\n" {
		t.Errorf("without changes: %s", got)
	}
}

// TestLinksDeep: what more links lead to than are followed needs a look, too.
func TestLinksDeep(t *testing.T) {
	for _, n := range []int{1, 3, 2 * maxNested} {
		was := map[string]string{".claude/skills": "../x1"}
		m := memory{was: was, is: was}
		for i := n - 1; i > 0; i-- { // each round finds the last
			link := fmt.Sprintf("x%d/n", i)
			was[link] = fmt.Sprintf("../x%d", i+1)
			m.links = append(m.links, link)
		}
		change := []layer.Change{added(fmt.Sprintf("x%d/SKILL.md", n), 0o644, 1)}
		if r := reviewed(m, change, "/t"); !r.Clean() {
			t.Errorf("nothing leads to them: %s", r.List())
		}
		m.links = append(m.links, ".claude/skills")
		if r := reviewed(m, change, "/t"); r.Clean() {
			t.Errorf("%d links: %s", n, r.List())
		}
	}
}

// TestLinksLate: a link that leads somewhere by a name of its own also does by one that another link gives it, in any
// order. Links that lead to what they are in end: the control is what is beside them.
func TestLinksLate(t *testing.T) {
	was := map[string]string{
		"y/.vscode": "../z", "y/.git": "../z", "x/.agents": "../y", "self/.agents": ".", "self/.vscode": ".", "a/.agents": "../b", "b/.agents": "../a",
	}
	links := []string{"y/.vscode", "x/.agents", "self/.agents", "self/.vscode", "a/.agents", "b/.agents"}
	change := []layer.Change{added("z/notes.txt", 0o644, 1), added("z/tasks.json", 0o644, 1), added("zz/notes.txt", 0o644, 1)}
	for _, c := range []struct {
		links []string
		want  []bool
	}{
		{links, []bool{true, true, false}},
		{[]string{links[1], links[0]}, []bool{true, true, false}},
		{links[:1], []bool{false, true, false}},
		{[]string{"y/.git", "x/.agents"}, []bool{true, true, false}},
		{links[2:3], []bool{false, false, false}},
		{links[3:4], []bool{false, false, false}},
		{links[4:], []bool{false, false, false}},
	} {
		r := reviewed(memory{was: was, links: c.links}, change, "/t")
		for i, want := range c.want {
			if got := r.Looks(i) != nil; got != want {
				t.Errorf("%q: %s needs a look: %v", c.links, change[i].Path, got)
			}
		}
	}
}

// TestListBound: so many bytes are compared to count lines, and it is said that no more are.
func TestListBound(t *testing.T) {
	m := memory{is: map[string]string{}, was: map[string]string{}}
	var all []layer.Change
	for i := range 20 {
		name := fmt.Sprintf("f%02d", i)
		m.is[name] = strings.Repeat("x", maxText)
		m.was[name] = "y"
		c := changedFile(name, 0o644, 0o644)
		c.Size = maxText
		c.Was.Size = 1
		all = append(all, c)
	}
	list := reviewed(m, all, "/t").List()
	if strings.Count(list, "  +1 -1\n") != 16 || strings.Count(list, "  not compared by lines, 1.0 MiB, was 1 byte\n") != 4 {
		t.Errorf("%s", list)
	}
}

// TestEscaped: nothing that a command named or wrote reaches a terminal as it is.
func TestEscaped(t *testing.T) {
	const evil = "a\x1b[2J\n--- b\t\u202e\xff\r"
	m := memory{
		is:  map[string]string{evil: "one\x1b[2J\u202e\xff\r\n", evil + "l": "/" + evil},
		was: map[string]string{evil: "two\n"},
	}
	bad := changedFile(evil, 0o644, 0o644)
	bad.Conflict = evil
	refused := added(evil+"r", 0o644, 0)
	refused.Refused = evil
	r := reviewed(m, []layer.Change{bad, added(evil+"l", linkMode, 0), refused}, "/"+evil)
	var b strings.Builder
	b.WriteString(r.Summary() + r.List())
	if err := r.Diff(&b); err != nil {
		t.Fatal(err)
	}
	for _, c := range strings.ReplaceAll(b.String(), "\t\n", "\n") { // patch(1) reads a name up to a tab
		if c != '\n' && (c < ' ' || c == '\u202e' || c == '\ufffd') {
			t.Fatalf("%q is shown:\n%q", c, b.String())
		}
	}
	if strings.Contains(b.String(), "\n--- b") {
		t.Errorf("a name makes a line:\n%s", b.String())
	}
}
