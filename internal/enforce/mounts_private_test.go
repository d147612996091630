package enforce

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// TestPrivate: each directory is private, named by a rule, or a gap.
func TestPrivate(t *testing.T) {
	h := treeHost(map[string]string{"/dev/shm/a/x": "", "/dev/pts/0": "", "/w/.env": "", "/g/.git/config": ""})
	const both = "ipc /dev/pts:devpts /dev/shm:tmpfs"
	for _, c := range []struct {
		name string
		ro   []string
		rw   []string
		deny string
		dir  string
		temp string
		caps func(*Caps)
		opts Options
		want string
	}{
		{name: "by default", deny: "/w/.env", want: both},
		{name: "nothing to cover", want: both},
		{name: "accepted", opts: Options{Accepted: []string{GapMetadata, GapIPC, GapTerminals}}, want: "none; ipc(hardening) terminals(hardening)"},
		{name: "two of three accepted", opts: Options{Accepted: []string{GapMetadata, GapIPC}}, want: "/dev/pts:devpts"},
		{name: "no namespace", rw: []string{"/g"}, caps: func(c *Caps) { c.MountNS = false }, want: "none; ipc(hardening) terminals(hardening)"},
		{name: "no IPC namespace", deny: "/w/.env", caps: func(c *Caps) { c.IPCReason = "tried" }, want: "/dev/pts:devpts /dev/shm:tmpfs; ipc(hardening)"},
		{name: "named", rw: []string{"/dev/shm"}, deny: "/w/.env", want: "ipc /dev/pts:devpts"},
		{name: "something in it is named", ro: []string{"/dev/shm/a"}, deny: "/w/.env", want: "ipc /dev/pts:devpts"},
		{name: "what is around is readable", ro: []string{"/dev"}, deny: "/w/.env", want: both},
		{name: "what is around is writable", rw: []string{"/dev"}, deny: "/w/.env", want: "ipc"},
		{name: "the working directory", dir: "/dev/shm/a", deny: "/w/.env", want: "ipc /dev/pts:devpts"},
		{name: "the temporary directory", temp: "/dev/shm/a", deny: "/w/.env", want: "ipc /dev/pts:devpts; ipc(hardening)"},
		{name: "a denial in it", deny: "/dev/shm/a/x", want: both},
		{name: "shared", opts: Options{Accepted: []string{GapIPC}}, deny: "/w/.env", want: "/dev/pts:devpts"},
		{name: "shared terminals", opts: Options{Accepted: []string{GapTerminals}}, deny: "/w/.env", want: "ipc /dev/shm:tmpfs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var deny []string
			if c.deny != "" {
				deny = []string{c.deny}
			}
			r := asked(h, "", append([]string{"/w"}, c.rw...), deny...)
			if c.dir != "" {
				r.Dir = c.dir
			}
			r.TempDir = c.temp
			add := func(p, origin string, access policy.Access) {
				st, err := h.Lstat(p)
				if err != nil {
					t.Fatal(err)
				}
				r.Paths = append(r.Paths, resolve.Path{Path: p, Access: access, Mode: fs.ModeDir, ID: st.ID,
					Rule: policy.Rule{Path: p, Access: access, Origin: policy.Origin{Source: origin}}})
			}
			for _, p := range []string{"/dev/shm", "/dev/pts"} {
				add(p, "baseline", policy.Read|policy.Write)
			}
			for _, p := range c.ro {
				add(p, "--ro", policy.Read)
			}
			caps := canMount()
			if c.caps != nil {
				c.caps(&caps)
			}
			p := NewPlan(r, caps, h, c.opts)
			if got := privateText(p); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if p.Mounts == nil {
				return
			}
			for _, d := range p.Mounts.Private {
				if d.Rights&landlock.FSIoctlDev == 0 || d.Rights&landlock.FSMakeReg == 0 {
					t.Errorf("%s: rights %#x", d.Path, d.Rights)
				}
				for _, m := range p.Mounts.Mounts {
					if host.Within(m.Path, d.Path) {
						t.Errorf("%s is mounted in %s, which is empty then", m.Path, d.Path)
					}
				}
				for _, rule := range p.Landlock.Paths {
					if rule.Path == d.Path {
						t.Errorf("a rule leads to what is below %s", d.Path)
					}
				}
			}
		})
	}
}

// privateText returns what a plan makes private, and the gaps.
func privateText(p *Plan) string {
	var out []string
	if mp := p.Mounts; mp == nil {
		out = append(out, "none")
	} else {
		if mp.IPC {
			out = append(out, "ipc")
		}
		for _, d := range mp.Private {
			out = append(out, d.Path+":"+d.Kind)
		}
	}
	text := strings.Join(out, " ")
	sep := "; "
	for _, g := range p.Gaps {
		if g.Name == GapIPC || g.Name == GapTerminals {
			text += sep + g.Name + "(" + string(g.Kind) + ")"
			sep = " "
		}
	}
	return text
}

// TestPrivateAccepted: even if nothing else needs a namespace, what can't be made private is
// reported.
func TestPrivateAccepted(t *testing.T) {
	h := treeHost(map[string]string{"/w/": "", "/home/u/": "", "/tmp/t/.home/": ""})
	r := asked(h, "/home/u", []string{"/w"})
	r.TempDir = "/tmp/t"
	r.Private.Home.Value, r.Private.Pids.Value = "private", "private"
	caps := canMount()
	caps.Privileged = true
	accepted := Options{Accepted: []string{GapProtect, GapMetadata, GapIPC, GapTerminals}}
	for _, c := range []struct {
		caps Caps
		want []string
	}{{caps, nil}, {caps.InPlace(false), []string{GapHome, GapPids}}} {
		p := NewPlan(r, c.caps, h, accepted)
		for _, name := range []string{GapHome, GapPids} {
			told := slices.ContainsFunc(p.Gaps, func(g Gap) bool { return g.Name == name && g.Kind == Core })
			if told != slices.Contains(c.want, name) || p.Mounts == nil && c.want == nil {
				t.Errorf("want %v, mounts %v, gaps %v", c.want, p.Mounts, p.Gaps)
			}
		}
	}
}
