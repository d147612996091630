package protect

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// A repository in a new directory has git run nothing until somebody works there, but
// for one whose directory is in the index of the repository around it: git status
// looks into each such gitlink, with the settings found there.

// newGitlinks tells of gitlinks in an index that has changed: those whose repository is
// not plain. One in its own working tree, which an earlier command may have made in a new
// directory, is none of them only if it was in the index before; one among the submodules'
// was protected if it was there. An index that is not read to its end, since what may be
// read is used up, is told itself.
func (s *Snapshot) newGitlinks(index, tree string) (out []Change) {
	links := indexed(index, &s.left)
	if s.left <= 0 {
		out = append(out, Change{Path: index})
	}
	for _, p := range links {
		dot := path.Join(tree, p, ".git")
		dir, st, err := s.host.RealPath(dot)
		known := s.links[path.Join(tree, p)]
		if err == nil && !st.Mode.IsDir() {
			dir, err = s.host.GitDir(dot, "gitdir: ")
			known = true
		}
		if err == nil && policy.Within(dot, tree) && !(known && s.looked(dir+"/config")) && !plain(s.host, dir, path.Join(tree, p), &s.left) {
			out = append(out, Change{Path: dot, New: true})
		}
	}
	return out
}

// nested reports whether a repository within a working tree is looked at.
func (a *Audit) nested(tree string) bool {
	is := func(p string) bool {
		return strings.HasSuffix(p, "/.git/config") && policy.Within(p, tree) && p != path.Join(tree, ".git/config")
	}
	return slices.ContainsFunc(a.Held, is) || slices.ContainsFunc(a.Watch, func(w Watched) bool { return !w.missing && is(w.Path) })
}

// noteLinks remembers gitlinks of a working tree. An index may be a stranger's, and have
// a million of them.
func (s *Snapshot) noteLinks(tree string, below []string) {
	if s.links == nil {
		s.links = make(map[string]bool, len(below))
	}
	for _, p := range below {
		s.links[path.Join(tree, p)] = true
	}
}

// looked reports whether a file was there before the command, and is watched or held.
func (s *Snapshot) looked(p string) bool {
	if slices.Contains(s.audit.Held, p) {
		return true
	}
	for i := range s.files {
		if s.files[i].path == p {
			return s.files[i].exists
		}
	}
	return false
}

// maxIndexes bounds how much of all indexes is read at once, in bytes: some million files.
// Who made them may have sparse ones without number.
const maxIndexes = 128 << 20

// indexed are the gitlinks of an index, with those of the index that it shares.
func indexed(file string, left *int) (out []string) {
	text := readIndex(file, left)
	for _, hash := range []int{20, 32} { // SHA-1, SHA-256
		own, ok := parseIndex(text, hash, false)
		if !ok {
			continue
		}
		out = append(out, own.links...)
		if own.shared == "" {
			continue
		}
		// A gitlink without a name takes the place of any entry there.
		base, _ := parseIndex(readIndex(path.Join(path.Dir(file), "sharedindex."+own.shared), left), hash, own.unnamed)
		out = append(out, base.links...)
	}
	return out
}

// gitIndex is what matters here of an index (gitformat-index(5)).
type gitIndex struct {
	links   []string // the gitlinks
	unnamed bool     // one has its name in the shared index
	shared  string   // that index, or ""
}

// parseIndex reads an index of version 2 to 4, whose object names have some bytes. With all,
// every entry is taken for a gitlink.
func parseIndex(b []byte, hash int, all bool) (x gitIndex, ok bool) {
	const gitlink, kind, extended = 0o160000, 0o170000, 0x4000
	word := binary.BigEndian.Uint32
	if len(b) < 12+hash || string(b[:4]) != "DIRC" {
		return x, false
	}
	version, at, end := word(b[4:]), 12, len(b)-hash
	var name []byte
	for range word(b[8:]) {
		start, fixed := at, 42+hash
		if at+fixed+2 > end {
			return x, false
		}
		if version > 2 && binary.BigEndian.Uint16(b[at+fixed-2:])&extended != 0 {
			fixed += 2
		}
		if at += fixed; version > 3 {
			strip, n := offset(b[at:end])
			if n == 0 || strip > len(name) {
				return x, false
			}
			name, at = name[:len(name)-strip], at+n
		} else {
			name = name[:0]
		}
		n := bytes.IndexByte(b[at:end], 0)
		if n < 0 {
			return x, false
		}
		name = append(name, b[at:at+n]...)
		if at += n + 1; version < 4 {
			at = start + (at-1-start+8)&^7
		}
		if all || word(b[start+24:])&kind == gitlink {
			x.links, x.unnamed = append(x.links, string(name)), x.unnamed || len(name) == 0
		}
	}
	for at+8+hash <= end {
		if string(b[at:at+4]) == "link" {
			if x.shared = hex.EncodeToString(b[at+8 : at+8+hash]); strings.Trim(x.shared, "0") == "" {
				x.shared = ""
			}
		}
		at += 8 + int(word(b[at+4:]))
	}
	return x, true
}

// offset reads a number as git's packs have it, and says how long it is; 0 for none.
func offset(b []byte) (value, n int) {
	for i, c := range b[:min(len(b), 8)] {
		value = value<<7 | int(c&0x7f)
		if c&0x80 == 0 {
			return value, i + 1
		}
		value++
	}
	return 0, 0
}
