package policy

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"testing"
)

// tableHost is a Host over a table of files: "dir", "file", "socket", "fifo", "device", "locked"
// for what may not be looked at, or "-> target" for a symbolic link. The directories above them
// exist. Its working directory is /w, and its home directory /home/u.
func tableHost(files map[string]string) Host {
	all := map[string]string{"/": "dir", "/w": "dir", "/home": "dir", "/home/u": "dir"}
	for p, kind := range files {
		all[p] = kind
		for d := path.Dir(p); all[d] == ""; d = path.Dir(d) {
			all[d] = "dir"
		}
	}
	inode := func(p string) uint64 {
		var h uint64 = 14695981039346656037
		for i := 0; i < len(p); i++ {
			h = (h ^ uint64(p[i])) * 1099511628211
		}
		return h
	}
	return Host{
		OS: "linux", Dir: "/w", Home: "/home/u", Env: []string{"HOME=/home/u", "PATH=/usr/bin:/bin"},
		Lstat: func(p string) (Stat, error) {
			if p != path.Clean(p) || !path.IsAbs(p) {
				return Stat{}, fmt.Errorf("lstat of %q, which is not clean", p)
			}
			modes := map[string]fs.FileMode{"dir": fs.ModeDir | 0o755, "file": 0o644, "socket": fs.ModeSocket, "fifo": fs.ModeNamedPipe, "device": fs.ModeDevice | fs.ModeCharDevice}
			kind := all[p]
			switch {
			case kind == "locked":
				return Stat{}, syscall.EACCES
			case strings.HasPrefix(kind, "-> "):
				return Stat{Mode: fs.ModeSymlink | 0o777, ID: FileID{Dev: 1, Ino: inode(p)}}, nil
			case kind == "":
				return Stat{}, syscall.ENOENT
			}
			return Stat{Mode: modes[kind], ID: FileID{Dev: 1, Ino: inode(p)}}, nil
		},
		Readlink: func(p string) (string, error) {
			target, ok := strings.CutPrefix(all[p], "-> ")
			if !ok {
				return "", syscall.EINVAL
			}
			return target, nil
		},
	}
}

// rules makes a policy of rules with one access.
func rules(a Access, paths ...string) *Policy {
	p := &Policy{}
	for i, name := range paths {
		p.FS.Rules = append(p.FS.Rules, Rule{Path: name, Access: a, Origin: Origin{Source: "test", Line: i + 1, Column: 1}})
	}
	return p
}

// mustResolve resolves a policy that has to be right.
func mustResolve(t testing.TB, p *Policy, h Host) *Resolved {
	t.Helper()
	r, err := p.Resolve(h)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// mustTOML decodes a policy that has to be right.
func mustTOML(t testing.TB, text string) *Policy {
	t.Helper()
	p, err := Decode("p.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
