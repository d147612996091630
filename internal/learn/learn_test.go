package learn_test

import (
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/learn"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

const (
	r   = policy.Read
	w   = policy.Write
	x   = policy.Exec
	dir = "/home/u/p"
)

// hostWith returns a machine with directories, whose names end in "/", and files.
func hostWith(names ...string) *host.Host {
	all := map[string]fs.FileMode{"/": fs.ModeDir}
	for _, n := range append(names, dir+"/", "/usr/bin/") {
		p := path.Clean(n)
		all[p] = 0
		if strings.HasSuffix(n, "/") {
			all[p] = fs.ModeDir
		}
		for d := path.Dir(p); d != "/"; d = path.Dir(d) {
			all[d] = fs.ModeDir
		}
	}
	inode := uint64(0)
	ids := map[string]uint64{}
	return &host.Host{
		OS: "linux", Dir: dir, Home: "/home/u", Env: []string{"HOME=/home/u", "PATH=/usr/bin:/home/u/tools"},
		Lstat: func(p string) (host.Stat, error) {
			m, ok := all[p]
			if !ok {
				return host.Stat{}, syscall.ENOENT
			}
			if ids[p] == 0 {
				inode++
				ids[p] = inode
			}
			return host.Stat{Mode: m, ID: host.FileID{Dev: 1, Ino: ids[p]}}, nil
		},
		Readlink: func(string) (string, error) { return "", syscall.EINVAL },
	}
}

func present(t interface {
	Helper()
	Fatal(...any)
}, h *host.Host, more ...*policy.Policy) *resolve.Resolved {
	t.Helper()
	base := &policy.Policy{FS: policy.FS{Rules: []policy.Rule{{Path: ".", Access: r | x}, {Path: "/usr", Access: r | x, Optional: true}}},
		Net: policy.Net{Allow: policy.Named{Value: "false"}}}
	got, err := resolve.Policy(policy.Merge(append([]*policy.Policy{base}, more...)...), *h)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// made is a need for a file that would be made, read for one that exists.
func made(p string) learn.Need    { return learn.Need{Path: p, Access: w, Change: true} }
func madeDir(p string) learn.Need { return learn.Need{Path: p, Access: w, Change: true, Dir: true} }
func read(p string) learn.Need    { return learn.Need{Path: p, Access: r} }
func write(p string) learn.Need   { return learn.Need{Path: p, Access: r | w} }

func TestPropose(t *testing.T) {
	for _, c := range []struct {
		name  string
		needs []learn.Need
		want  string
		left  int
	}{
		{"nothing", nil, "", 0},
		{"the working directory is built in", []learn.Need{madeDir(dir + "/target"), made(dir + "/a/b")}, "--rw .", 0},
		{"a new file", []learn.Need{made("/home/u/other/out")}, "--rw-noexec '~/other'", 0},
		{"a new directory in the home directory", []learn.Need{madeDir("/home/u/cache1")}, "--create-missing --rw-noexec '~/cache1'", 0},
		{"a new file in the home directory", []learn.Need{made("/home/u/.foorc")}, "", 1},
		{"a file that is there", []learn.Need{write("/home/u/other/log")}, "--rw-noexec '~/other/log'", 0},
		{"two files that are there", []learn.Need{write("/home/u/other/log"), write("/home/u/other/b"), read("/home/u/other/c")}, "--rw-noexec '~/other'", 0},
		{"two are read", []learn.Need{read("/home/u/other/a"), read("/home/u/other/b")}, "--ro '~/other/a'; --ro '~/other/b'", 0},
		{"three are read", []learn.Need{read("/home/u/other/a"), read("/home/u/other/b"), read("/home/u/other/d/c")}, "--ro '~/other'", 0},
		{"three in the home directory", []learn.Need{read("/home/u/a"), read("/home/u/b"), read("/home/u/c")}, "--ro '~/a'; --ro '~/b'; --ro '~/c'", 0},
		{"three in ~/.cache", []learn.Need{madeDir("/home/u/.cache/a"), madeDir("/home/u/.cache/b"), madeDir("/home/u/.cache/c")},
			"--create-missing --rw-noexec '~/.cache/a'; --create-missing --rw-noexec '~/.cache/b'; --create-missing --rw-noexec '~/.cache/c'", 0},
		{"executed and written", []learn.Need{made("/home/u/other/prog"), {Path: "/home/u/other/prog", Access: r | x}}, "--rw '~/other'", 0},
		{"executed", []learn.Need{{Path: "/home/u/other/prog", Access: r | x}}, "--rox '~/other/prog'", 0},
		{"listed, and one written below", []learn.Need{{Path: "/home/u/other", Access: r, Dir: true}, write("/home/u/other/log")}, "--ro '~/other'; --rw-noexec '~/other/log'", 0},
		{"secrets", []learn.Need{read("/home/u/.ssh/id_rsa"), made("/home/u/.aws/x"), read("/home/u/.npmrc"), {Path: "/home/u", Access: r, Dir: true}}, "", 4},
		{"zsbx's own", []learn.Need{read("/home/u/.local/state/zsbx/trust"), madeDir("/home/u/.zsbx.toml"), made("/home/u/p2/.zsbx.toml"), {Path: "/home/u/.local/state/zsbx/sessions", Access: r, Dir: true}}, "", 4},
		{"around secrets", []learn.Need{read("/home/u/.m2/a"), read("/home/u/.m2/b"), read("/home/u/.m2/c")}, "--ro '~/.m2/a'; --ro '~/.m2/b'; --ro '~/.m2/c'", 0},
		{"on PATH", []learn.Need{made("/home/u/tools/x"), madeDir("/home/u/tools/y"), made("/home/u/.bashrc")}, "", 3},
		{"a device", []learn.Need{write("/dev/kvm"), {Path: "/dev", Access: r, Dir: true}}, "", 2},
		{"what programs outside start", []learn.Need{made("/home/u/.bashrc.d/x"), madeDir("/home/u/.bashrc.d"), made("/home/u/.config/kitty/kitty.conf"), madeDir("/home/u/.config/plasma-workspace"),
			made("/home/u/.tmux/plugins/x"), write("/home/u/.cargo/config.toml"), made("/home/u/miniconda3/bin/x"), made("/home/u/.local/opt/tool/bin/x"), made("/home/u/.cache/nvim/luac/x")}, "", 9},
		{"what may be settings", []learn.Need{made("/home/u/.config/mytool/x"), madeDir("/home/u/.config/mytool"), write("/home/u/.mytoolrc"), write("/home/u/.cache/p10k-instant-prompt-u.zsh"),
			write("/home/u/.zcompdump"), write("/home/u/.cargo/env"), made("/home/u/.local/share/direnv/allow/x"), write("/home/u/bin/x")}, "", 8},
		{"what is none", []learn.Need{read("/home/u/.config/mytool/x"), read("/home/u/.mytoolrc"), write("/home/u/notes")}, "--ro '~/.config/mytool/x'; --ro '~/.mytoolrc'; --rw-noexec '~/notes'", 0},
		{"other projects' caches", []learn.Need{madeDir("/home/u/.cache/zsbx-caches"), made("/home/u/.cache/zsbx-caches/0123456789abcdef/npm/x")}, "", 2},
		{"the system", []learn.Need{made("/usr/lib/x"), write("/etc/hosts"), write("/proc/self/oom_adj"), made("/tmp/x"), madeDir("/tmp/y"), made("/var/lib/x")}, "", 6},
		{"a preset's", []learn.Need{made("/home/u/.cargo/registry/x"), read("/home/u/.cargo/config.toml")}, "--preset rust", 0},
		{"a repository", []learn.Need{read("/home/u/lib/.git/config")}, "--ro '~/lib/.git'", 0},
		{"a bare one, written", []learn.Need{read("/srv/x.git/HEAD"), madeDir("/home/u/bare.git/objects/incoming"), made("/home/u/bare.git/refs/heads/x.lock")}, "--rw-noexec '~/bare.git'; --ro /srv/x.git", 0},
		{"none by that name", []learn.Need{read("/home/u/not.git/config")}, "--ro '~/not.git/config'", 0},
		{"ports", []learn.Need{{Port: 443, Key: "net.connect_tcp"}, {Port: 80, Key: "net.bind_tcp"}, {Path: "/run/x.sock", Key: "net.unix"}}, "--bind-tcp 80; --connect-tcp 443; --unix /run/x.sock", 0},
		{"harmless", []learn.Need{{Path: "/home/u/.gitconfig", Access: r, Why: "git goes on without"}}, "", 0},
		{"a port of the kernel's choice", []learn.Need{{Key: "net.bind_tcp"}}, "", 1},
	} {
		h := hostWith("/home/u/other/log", "/home/u/.cargo/registry/", "/home/u/.cargo/config.toml", "/home/u/.m2/a", "/home/u/tools/", "/tmp/",
			"/home/u/miniconda3/bin/", "/home/u/.local/opt/tool/bin/", "/home/u/.cache/nvim/luac/",
			"/home/u/lib/.git/HEAD", "/home/u/bare.git/HEAD", "/srv/x.git/HEAD")
		now := present(t, h)
		got, left := learn.Propose(c.needs, now)
		var all []string
		for i := range got {
			f := got[i].Hint(now).Flags
			all = append(all, f)
		}
		if s := strings.Join(all, "; "); strings.ReplaceAll(s, "'", "") != strings.ReplaceAll(c.want, "'", "") || len(left) != c.left {
			t.Errorf("%s: %s (%v), want %s", c.name, s, left, c.want)
		}
	}
}

// TestRepository: a command in a part of a repository gets a proposal for the nearest repository,
// not for one file after the other. Never for the home directory, or for what is outside.
func TestRepository(t *testing.T) {
	const part = "/home/u/all/mono/part"
	files := []string{part + "/", "/home/u/all/mono/Cargo.toml", "/home/u/all/mono/lib/Cargo.toml", "/home/u/all/Makefile"}
	for _, c := range []struct {
		dot, want string
		needs     []learn.Need
		left      int
	}{
		{"/home/u/all/mono/.git/HEAD", "--ro ..", []learn.Need{read("/home/u/all/mono/Cargo.toml")}, 0},
		{"/home/u/all/mono/.git", "--ro ..", []learn.Need{read("/home/u/all/mono/lib/Cargo.toml")}, 0},
		{"/home/u/all/mono/.git/HEAD", "--rw ..", []learn.Need{madeDir("/home/u/all/mono/target"), read("/home/u/all/mono/Cargo.toml")}, 0},
		{"/home/u/all/mono/.git/HEAD", "--rw ..", []learn.Need{made("/home/u/all/mono/.git/index.lock")}, 0},
		{"/home/u/all/mono/.git/HEAD", "--rw .", []learn.Need{made(part + "/x")}, 0},
		{"/home/u/all/mono/.git/HEAD", "--ro ~/all/Makefile; --rw .", []learn.Need{made(part + "/x"), read("/home/u/all/Makefile")}, 0},
		{"/home/u/.git/HEAD", "--ro ~/all/mono/Cargo.toml", []learn.Need{read("/home/u/all/mono/Cargo.toml")}, 0},
		{"/home/u/.git/HEAD", "", []learn.Need{made("/home/u/.bashrc"), made("/home/u/.git/index.lock")}, 2},
		{part + "/x", "--ro ~/all/mono/Cargo.toml", []learn.Need{read("/home/u/all/mono/Cargo.toml")}, 0},
	} {
		h := hostWith(append(files, c.dot)...)
		h.Dir = part
		now := present(t, h)
		got, left := learn.Propose(c.needs, now)
		var all []string
		for i := range got {
			all = append(all, got[i].Hint(now).Flags)
		}
		if s := strings.Join(all, "; "); s != c.want || len(left) != c.left {
			t.Errorf("%s, %v: %s (%v), want %s", c.dot, c.needs, s, left, c.want)
		}
	}
}

// TestRepositoryOfSettings: a repository around the working directory is not proposed for writing
// if programs outside execute what is in it, or if some of it is on PATH.
func TestRepositoryOfSettings(t *testing.T) {
	for _, c := range []struct {
		top, want string
		need      learn.Need
	}{
		{"/home/u/.vim", "", made("/home/u/.vim/plugin/x.vim")},
		{"/home/u/.vim", "", made("/home/u/.vim/x")},
		{"/home/u/.vim", "", write("/home/u/.vim/vimrc")},
		{"/home/u/.vim", "--ro ..", read("/home/u/.vim/vimrc")},
		{"/home/u/tools", "", made("/home/u/tools/ls")},
		{"/home/u/all", "", made("/home/u/all/bin/ls")},
		{"/home/u/all", "", made("/home/u/all/x")},
		{"/home/u/mono", "--rw ..", made("/home/u/mono/bin/ls")}, // a control
	} {
		h := hostWith(c.top+"/.git/HEAD", c.top+"/part/", c.top+"/bin/", c.top+"/plugin/", c.top+"/vimrc")
		h.Dir, h.Env = c.top+"/part", []string{"HOME=/home/u", "PATH=/usr/bin:/home/u/tools:/home/u/all/bin"}
		now := present(t, h)
		rules, _ := learn.Rules([]learn.Need{c.need}, now)
		all, _ := learn.Propose([]learn.Need{c.need}, now)
		for _, all := range [][]learn.Proposal{rules, all} {
			got := ""
			for i := range all {
				got += all[i].Hint(now).Flags
			}
			if got != c.want {
				t.Errorf("%s: %q, want %q", c.need.Path, got, c.want)
			}
		}
	}
}

// TestHintOfWriting: for what is only written, the hint has a flag that exists.
func TestHintOfWriting(t *testing.T) {
	h := hostWith()
	if got := (&learn.Proposal{Need: made("/home/u/.bashrc")}).Hint(present(t, h)).Flags; got != "--rw-noexec ~/.bashrc" {
		t.Error(got)
	}
}

// TestHints: hints as a flag, as a line of a policy file, and as JSON.
func TestHints(t *testing.T) {
	now := present(t, hostWith())
	for _, c := range []struct {
		q    learn.Proposal
		want [3]string
	}{
		{learn.Proposal{Need: read("/home/u/a b$")}, [3]string{`--ro '~/a b$$'`, `[fs] ro = ["~/a b$$"]`, `{"fs":{"ro":["~/a b$$"]}}`}},
		{learn.Proposal{Need: madeDir("/home/u/x"), Needs: []learn.Need{madeDir("/home/u/x")}}, [3]string{"--create-missing --rw-noexec ~/x", `[fs] rw_noexec = [{ path = "~/x", create = true }]`,
			`{"fs":{"rw_noexec":[{"create":true,"path":"~/x"}]}}`}},
		{learn.Proposal{Need: learn.Need{Port: 443, Key: "net.connect_tcp"}}, [3]string{"--connect-tcp 443", "[net] connect_tcp = [443]", `{"net":{"connect_tcp":[443]}}`}},
		{learn.Proposal{Need: learn.Need{Port: 80, Key: "net.bind_tcp"}}, [3]string{"--bind-tcp 80", "[net] bind_tcp = [80]", `{"net":{"bind_tcp":[80]}}`}},
		{learn.Proposal{Need: learn.Need{Path: "/run/s", Key: "net.unix"}}, [3]string{"--unix /run/s", `[net] unix = ["/run/s"]`, `{"net":{"unix":["/run/s"]}}`}},
		{learn.Proposal{Preset: "rust"}, [3]string{"--preset rust", `presets = ["rust"]`, `{"presets":["rust"]}`}},
	} {
		h := c.q.Hint(now)
		if got := [3]string{h.Flags, h.TOML(), string(h.JSON())}; got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if none := (learn.Hint{Flags: "--shared-tmp"}); none.JSON() != nil {
		t.Errorf("%q", none.JSON())
	}
}

// someNeeds draws what may be refused, in places that matter.
func someNeeds(t *rapid.T) []learn.Need {
	places := []string{"/home/u", "/home/u/.cache", "/home/u/.cache/tool", "/home/u/.config", "/home/u/.config/tool", "/home/u/.local/share", "/home/u/.ssh",
		"/home/u/.m2", "/home/u/.cargo", "/home/u/.cargo/registry", "/home/u/.config/gh", "/home/u/other", "/home/u/other/deep/er", dir, dir + "/.git", "/home/u/tools",
		"/", "/home", "/tmp", "/tmp/x", "/etc", "/usr", "/usr/share", "/var", "/var/lib", "/opt/x", "/srv", "/srv/a/b", "/mnt/data", "/proc/1", "/home/v"}
	var out []learn.Need
	for range rapid.IntRange(0, 12).Draw(t, "n") {
		p := path.Join(rapid.SampledFrom(places).Draw(t, "place"), rapid.SampledFrom([]string{"", "a", "b", "c", "id_rsa", "d/e"}).Draw(t, "name"))
		n := learn.Need{Path: p, Access: rapid.SampledFrom([]policy.Access{r, w, r | w, r | x}).Draw(t, "access"), Dir: rapid.Bool().Draw(t, "dir")}
		n.Change = n.Access&w != 0 && rapid.Bool().Draw(t, "change")
		out = append(out, n)
	}
	return out
}

// TestSafe: no proposal is for the home directory or one above it, for what is shared, or for a
// place of secrets or a directory with one in it, however it was made, narrowed or widened.
func TestSafe(t *testing.T) {
	h := hostWith("/home/u/.cargo/registry/", "/home/u/.ssh/id_rsa", "/home/u/.m2/settings.xml", "/home/u/tools/", "/home/v/")
	now := present(t, h)
	rapid.Check(t, func(t *rapid.T) {
		needs := someNeeds(t)
		got, _ := learn.Propose(needs, now)
		for _, q := range slices.Clone(got) {
			got = append(got, q.Narrower()...)
			got = append(got, q.Wider(now))
		}
		for _, q := range got {
			if q.Path == "" {
				continue
			}
			if s := now.Secret(q.Path); s != "" {
				t.Fatalf("%v opens %s", q.Path, s)
			}
			if q.Dir && host.Within("/home/u", q.Path) {
				t.Fatalf("%s holds the home directory", q.Path)
			}
			if q.Dir && slices.Contains([]string{"/home/u/.cache", "/home/u/.config", "/home/u/.local/share", "/tmp", "/etc", "/usr", "/var", "/usr/share", "/srv", "/home/v"}, q.Path) {
				t.Fatalf("%s is shared", q.Path)
			}
			if q.Access&w != 0 && (host.Within("/home/u/tools", q.Path) || host.Within(q.Path, "/usr") || host.Within(q.Path, "/etc") || host.Within(q.Path, "/proc")) {
				t.Fatalf("%s is written", q.Path)
			}
		}
	})
}

// TestRules: a user who asks gets a proposal for a wide directory if that itself was refused, but
// no more of it than that, and never what TestSafe is about.
func TestRules(t *testing.T) {
	h := hostWith("/srv/a", "/srv/b", "/srv/c", "/home/u/.ssh/id_rsa", "/home/u/.cargo/registry/")
	now := present(t, h)
	list := func(p string) learn.Need { return learn.Need{Path: p, Access: r, Dir: true} }
	for _, c := range []struct {
		need learn.Need
		want string
	}{
		{list("/srv"), "--ro /srv"}, {write("/dev/kvm"), "--rw-noexec /dev/kvm"}, {made("/home/u/.cargo/registry/x"), "--preset rust"}, {madeDir("/home/u/.npm"), "--preset node"},
		{list("/"), ""}, {list("/home"), ""}, {list("/home/u"), ""}, {list("/home/u/.ssh"), ""}, {list("/dev"), ""},
		{learn.Need{Path: "/tmp", Access: w, Dir: true}, ""}, {made("/srv/x"), "--rw-noexec /srv"}, {madeDir("/srv/x"), "--create-missing --rw-noexec /srv/x"},
		{made("/home/u/.cache/x"), ""}, {made("/home/u/x"), ""}, {made("/x"), ""}, {made("/var/x"), ""},
	} {
		got := ""
		rules, _ := learn.Rules([]learn.Need{c.need}, now)
		for _, q := range rules {
			got += q.Hint(now).Flags
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.need.Path, got, c.want)
		}
	}
	if got, _ := learn.Rules([]learn.Need{read("/srv/a"), read("/srv/b"), read("/srv/c")}, now); len(got) != 3 {
		t.Errorf("%v", got)
	}
	if got, _ := learn.Rules([]learn.Need{read("/srv/a")}, &resolve.Resolved{}); got != nil {
		t.Errorf("of a policy made by hand: %v", got)
	}
}

// TestSuffices: the proposals allow everything that was refused, except what is returned as left.
// The order of what was refused does not matter.
func TestSuffices(t *testing.T) {
	h := hostWith("/home/u/.cargo/registry/", "/home/u/.m2/settings.xml", "/home/u/tools/")
	now := present(t, h)
	rapid.Check(t, func(t *rapid.T) {
		needs := someNeeds(t)
		got, left := learn.Propose(needs, now)
		again, _ := learn.Propose(rapid.Permutation(needs).Draw(t, "order"), now)
		if !reflect.DeepEqual(got, again) {
			t.Fatalf("%v in another order gives %v", got, again)
		}
		// What exists when the command runs: everything that was named, and what is made.
		var names []string
		for _, q := range got {
			if q.Preset == "" {
				names = append(names, q.Path+map[bool]string{true: "/"}[q.Dir])
			}
		}
		h := hostWith(append(names, "/home/u/.cargo/registry/")...)
		var more []*policy.Policy
		for _, q := range got {
			more = append(more, q.Hint(now).Policy)
		}
		for _, n := range policy.Merge(more...).Presets {
			p, err := policy.Preset(n.Value)
			if err != nil {
				t.Fatal(err)
			}
			more = append(more, p)
		}
		then := present(t, h, more...)
		for _, n := range needs {
			if slices.ContainsFunc(left, func(l learn.Need) bool { return l.Path == n.Path }) ||
				n.Dir && n.Change && slices.ContainsFunc(got, func(q learn.Proposal) bool { return q.Preset != "" && slices.Contains(q.Needs, n) }) {
				continue // a preset makes it
			}
			if v := then.Allowed(n.Path, n.Access); !v.Allowed {
				t.Fatalf("%+v: %s; %v", n, v.Reason, got)
			}
		}
	})
}
