package policy

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/zsbx/zsbx/internal/glob"
)

// checkDecoded checks what is true for every decoder and every input: the policy is nil if and only
// if there is an error, errors have places in the file, and what was read can be written and read
// again.
func checkDecoded(t *testing.T, data []byte, p *Policy, err error) {
	if (p == nil) != (err != nil) {
		t.Fatalf("policy %v, error %v", p, err)
	}
	if err != nil {
		var es Errors
		if !errors.As(err, &es) || len(es) == 0 {
			t.Fatalf("%T is not Errors", err)
		}
		lines := bytes.Count(data, []byte("\n")) + 1
		for _, e := range es {
			if e.Code != CodeMore && e.Code != CodeLimit && (e.Origin.Line < 1 || e.Origin.Line > lines || e.Origin.Column < 1) {
				t.Fatalf("%v lies outside %d lines", e, lines)
			}
		}
		return
	}
	var b bytes.Buffer
	if err := p.EncodeTOML(&b); err != nil {
		t.Fatalf("what was read cannot be written: %v", err)
	}
	again, err := Decode("p.toml", b.Bytes())
	if err != nil || again.Hash() != p.Hash() {
		t.Fatalf("%v after writing and reading:\n%q\n%q", err, p.statements(""), again.statements(""))
	}
}

func FuzzDecodeTOML(f *testing.F) {
	f.Add([]byte(fullTOML))
	for _, s := range []string{
		"", "fs.ro = [", "[fs]\n[fs]\n", "[[fs.ro]]\npath='/'\noptional=true\n[[fs.ro]]\npath='.'\n", "a.b = 1\n[a]\n", "x = {a.b = 1, a = 2}",
		"net.connect_tcp = [0x1F, 1_000, 0o17, 0b1, +5]", "env.set = { 'ü' = \"\"\"\nx\\u0007\"\"\" }", "limits.timeout = '1e3s'", "fs.deny = ['**/x', '[!a]']",
		"[linux]\nfs.ro = ['/']\n[macos.fs.system]\nread_only = []\n", "\r\n[fs]\r\nro = ['/']", "\xef\xbb\xbf[fs]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Decode("p.toml", data)
		checkDecoded(t, data, p, err)
		// Nothing may be accepted here that is not TOML for other programs.
		var any map[string]any
		if terr := toml.Unmarshal(data, &any); err == nil && terr != nil {
			t.Fatalf("read what is no TOML: %v", terr)
		}
	})
}

func FuzzDecodeJSON(f *testing.F) {
	f.Add([]byte(fullJSON))
	for _, s := range []string{
		"", "{}", "[]", `{"fs":{"ro":["/"],"ro":[]}}`, `{"net":{"connect_tcp":[1e2, -0, 443]}}`, `{"env":{"set":{"A":"\u0000","B":"\ud800"}}}`,
		`{"fs":{"ro":[{"path":"/","optional":true}]}}` + "\n", `{"presets":[[[[{}]]]]}`, "{\"fs\":\n{\"rw\" : [ \".\" , 3 ]}}", `nul`, `{"a":1}{`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Decode("p.json", data)
		checkDecoded(t, data, p, err)
	})
}

// plainWalk is the walker's oracle: it has the names that are still to come in one list, remembers
// nothing and counts links.
func plainWalk(h Host, p string) (string, Stat, error) {
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
			return "", Stat{}, err
		}
		if st.Mode&fs.ModeSymlink == 0 {
			done = append(done, name)
			if len(todo) > 0 && !st.Mode.IsDir() {
				return "", Stat{}, syscall.ENOTDIR
			}
			continue
		}
		links++
		if links > 40 {
			return "", Stat{}, syscall.ELOOP
		}
		target, err := h.Readlink(at)
		if err != nil || target == "" {
			return "", Stat{}, syscall.ENOENT
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
		h := tableHost(files)
		h.Env = append(h.Env, "A="+other)
		p := rules(Read, written, other)
		p.FS.Rules[1].Optional = true
		p.FS.Deny = []Named{{Value: other}}
		r, err := p.Resolve(h)
		if (r == nil) != (err != nil) {
			t.Fatalf("resolved %v, error %v", r, err)
		}
		if err != nil {
			var es Errors
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
			if v := r.Allowed(p.Path, Read); !v.Allowed && v.Deny == nil {
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
			if _, err := r.Policy().Resolve(h); err != nil {
				t.Fatalf("again: %v", err)
			}
		}
	})
}
