package resolve

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/zsbx/zsbx/internal/glob"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/policy"
)

// plainWalk is the walker's oracle: it has the names that are still to come in one list, remembers
// nothing and counts links.
func plainWalk(h host.Host, p string) (string, host.Stat, error) {
	done, todo := []string{}, strings.Split(p, "/")
	for links := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			done = done[:max(len(done)-1, 0)]
			continue
		}
		at := "/" + strings.Join(append(done, name), "/")
		st, err := h.Lstat(at)
		if err != nil {
			return "", host.Stat{}, err
		}
		if st.Mode&fs.ModeSymlink == 0 {
			done = append(done, name)
			if len(todo) > 0 && !st.Mode.IsDir() {
				return "", host.Stat{}, syscall.ENOTDIR
			}
			continue
		}
		links++
		if links > 40 {
			return "", host.Stat{}, syscall.ELOOP
		}
		target, err := h.Readlink(at)
		if err != nil || target == "" {
			return "", host.Stat{}, syscall.ENOENT
		}
		if strings.HasPrefix(target, "/") {
			done = done[:0]
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	real := "/" + strings.Join(done, "/")
	st, err := h.Lstat(real)
	return real, st, err
}

// FuzzResolve checks what is true for every path and every file system with symbolic links: a
// result is canonical, is what a plain walk finds, has links if it is not where it was written, and
// errors are Errors.
func FuzzResolve(f *testing.F) {
	f.Add("a/b", "x", "/w/x", "..", "cwd")
	f.Add("link/../b", "link", "/", "l2", "$A/x")
	f.Add("~/x/..", "a/b", "../../a", "c", "${A:-~/y}")
	f.Add("loop", "loop", "loop", "../w/loop", "**/x")
	f.Add("a$$b", "a$b", "/home/u", "/", `\[*`)
	f.Fuzz(func(t *testing.T, written, link1, target1, target2, other string) {
		files := map[string]string{"/w/dir/file": "file", "/home/u/x": "dir", "/w/fixed": "-> " + target2}
		if name := strings.Trim(link1, "/"); name != "" && !strings.Contains(name, "/") && name != "." && name != ".." {
			files["/w/"+name] = "-> " + target1
		}
		h := hosttest.Table(files)
		h.Env = append(h.Env, "A="+other)
		p := rules(policy.Read, written, other)
		p.FS.Rules[1].Optional = true
		p.FS.Deny = []policy.Named{{Value: other}}
		r, err := Policy(p, h)
		if (r == nil) != (err != nil) {
			t.Fatalf("resolved %v, error %v", r, err)
		}
		if err != nil {
			var es policy.Errors
			if !errors.As(err, &es) || len(es) == 0 {
				t.Fatalf("%T is not Errors", err)
			}
			return
		}
		if len(r.Paths)+len(r.Skipped) != 2 {
			t.Fatalf("a rule got lost: %+v, %+v", r.Paths, r.Skipped)
		}
		for _, s := range r.Skipped {
			written, err := (&view{Host: h}).absolute(s.Rule.Path)
			if _, _, werr := plainWalk(h, written); err == nil && werr == nil {
				t.Fatalf("skipped %q, which is there: %s", written, s.Reason)
			}
		}
		for i := range r.Paths {
			p := &r.Paths[i]
			real, st, err := plainWalk(h, p.Written)
			if err != nil || real != p.Path || st.ID != p.ID {
				t.Fatalf("%q is %q, a plain walk says %q, %v", p.Written, p.Path, real, err)
			}
			if p.Path != p.Written && len(p.Links) == 0 {
				t.Fatalf("%q leads to %q without a link", p.Written, p.Path)
			}
			if v := r.Allowed(p.Path, policy.Read); !v.Allowed && v.Deny == nil {
				t.Fatalf("%+v is not allowed: %+v", p, v)
			}
		}
		for _, d := range r.Deny {
			if d.Glob {
				if _, err := glob.Parse(d.Pattern); err != nil {
					t.Fatalf("%+v: %v", d, err)
				}
			}
		}
		// Links may lead to names that are not allowed in a policy.
		if r.Policy().EncodeTOML(io.Discard) == nil {
			if _, err := Policy(r.Policy(), h); err != nil {
				t.Fatalf("again: %v", err)
			}
		}
	})
}
