package enforce

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce/landlock"
)

// TestOwnApart: what stays writable without mounts.
func TestOwnApart(t *testing.T) {
	h := treeHost(map[string]string{
		"/home/u/src/": "", "/home/u/.config/zsbx/policy.toml": "", "/home/u/.config/other/": "", "/home/u/file": "",
		"/home/u/shut/zsbx/x": "", "/home/u/shut/other/": "", "/w/x": "",
		"/proc/self/mountinfo": "1 0 0:5 / /home/u/src/proc rw - proc proc rw\n", "/home/u/src/proc/": "",
	})
	readDir := h.ReadDir
	h.ReadDir = func(p string, n int) ([]fs.DirEntry, error) {
		if p == "/home/u/shut" {
			return nil, fs.ErrPermission
		}
		return readDir(p, n)
	}
	r := asked(h, "/home/u", []string{"/home/u", "/w"})
	opts := Options{Accepted: []string{GapProtect}, Protect: []string{"/home/u/.config/zsbx", "/home/u/shut/zsbx", "/elsewhere"}}
	caps := canMount()
	caps.MountNS = false
	writable := func(p *Plan) string {
		var out []string
		for _, rule := range p.Landlock.Paths {
			if rule.Rights&landlock.FSMakeReg != 0 || !rule.Dir && rule.Rights&landlock.FSWriteFile != 0 {
				out = append(out, rule.Path)
			}
		}
		return strings.Join(out, " ")
	}
	p := NewPlan(r, caps, h, opts)
	if got, want := writable(p), "/home/u/.config/other /home/u/file /w"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := p.Err(nil, false); err != nil {
		t.Error(err)
	}
	if !slices.ContainsFunc(p.Gaps, func(g Gap) bool {
		return g.Name == GapZsbxFiles && strings.Contains(g.Promise, "directly in /home/u, ")
	}) {
		t.Errorf("the directories that are closed to new names are not reported: %v", p.Gaps)
	}
	opts.Accepted = append(opts.Accepted, GapZsbxFiles)
	p = NewPlan(r, caps, h, opts)
	if got, want := writable(p), "/home/u /w"; got != want {
		t.Errorf("accepted: got %q, want %q", got, want)
	}
	if p.Err(nil, false) == nil || p.Err([]string{GapZsbxFiles}, false) != nil {
		t.Errorf("accepted: %v", p.Gaps)
	}
	opts.Accepted, caps.MountNS = opts.Accepted[:1], true
	want := "protect /home/u/.config/zsbx"
	p = NewPlan(asked(h, "/home/u", []string{"/home/u/.config"}), caps, h, opts)
	if mountList(p) != want {
		t.Errorf("mounts: got %q, want %q", mountList(p), want)
	}
}
