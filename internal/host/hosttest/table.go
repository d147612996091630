package hosttest

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/zsbx/zsbx/internal/host"
)

// Table is a Host over a table of files: "dir", "file", "socket", "fifo", "device", "locked"
// for what may not be looked at, or "-> target" for a symbolic link. The directories above them
// exist. Its working directory is /w, and its home directory /home/u.
func Table(files map[string]string) host.Host {
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
	return host.Host{
		OS: "linux", Dir: "/w", Home: "/home/u", Env: []string{"HOME=/home/u", "PATH=/usr/bin:/bin"},
		Lstat: func(p string) (host.Stat, error) {
			if p != path.Clean(p) || !path.IsAbs(p) {
				return host.Stat{}, fmt.Errorf("lstat of %q, which is not clean", p)
			}
			modes := map[string]fs.FileMode{
				"dir":    fs.ModeDir | 0o755,
				"file":   0o644,
				"socket": fs.ModeSocket,
				"fifo":   fs.ModeNamedPipe,
				"device": fs.ModeDevice | fs.ModeCharDevice,
			}
			kind := all[p]
			switch {
			case kind == "locked":
				return host.Stat{}, syscall.EACCES
			case strings.HasPrefix(kind, "-> "):
				return host.Stat{Mode: fs.ModeSymlink | 0o777, ID: host.FileID{Dev: 1, Ino: inode(p)}}, nil
			case kind == "":
				return host.Stat{}, syscall.ENOENT
			}
			return host.Stat{Mode: modes[kind], ID: host.FileID{Dev: 1, Ino: inode(p)}}, nil
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
