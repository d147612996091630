package policy

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"
)

// maxRealLinks is how many symbolic links one path may lead through, as in
// path_resolution(7).
const maxRealLinks = 40

// realPath follows every symbolic link of an absolute path, the last
// component's too, and returns the canonical path with what is there. The
// error is that of the first component that can't be followed; more than 40
// links are syscall.ELOOP.
func (h *Host) realPath(p string) (string, Stat, error) {
	done, rest, links := "/", strings.Split(p, "/"), 0
	st, err := h.Lstat("/")
	if err != nil {
		return "", st, err
	}
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			done = path.Dir(done)
			if st, err = h.Lstat(done); err != nil {
				return "", st, err
			}
			continue
		}
		next := path.Join(done, name)
		if st, err = h.Lstat(next); err != nil {
			return "", st, err
		}
		if st.Mode&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > maxRealLinks {
			return "", st, fmt.Errorf("resolve %s: %w", p, syscall.ELOOP)
		}
		target, err := h.Readlink(next)
		if err != nil {
			return "", st, err
		}
		if strings.HasPrefix(target, "/") {
			done = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
		if st, err = h.Lstat(done); err != nil {
			return "", st, err
		}
	}
	return done, st, nil
}
