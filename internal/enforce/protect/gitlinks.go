package protect

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/gitconfig"
	"github.com/zsbx/zsbx/internal/host"
)

// Git runs nothing from a repository in a new directory until somebody works there, with one
// exception. If the directory is in the index of the repository around it (a gitlink), git
// status looks into it and uses the settings there.

// newGitlinks returns what is not plain in the repositories of the gitlinks in a changed index.
// Protected repositories are left out. A repository with its git directory in its working tree is
// left out only if it was in the index before, since an earlier command may have made it in a new
// directory. If the index can't be read to its end, the result contains the index itself.
func (s *Snapshot) newGitlinks(index, tree string) (out []Change) {
	links, err := indexed(index, &s.left)
	for _, p := range links {
		if s.left <= 0 {
			break
		}
		if sub := path.Join(tree, p); below(sub, tree) {
			out = append(out, s.newGitlink(sub)...)
		}
	}
	if err != nil || s.left <= 0 {
		out = append(out, Change{Path: index})
	}
	return out
}

// newGitlink is newGitlinks for one gitlink.
func (s *Snapshot) newGitlink(sub string) []Change {
	dot := path.Join(sub, ".git")
	to := s.host.Way(dot)
	known := s.links[sub]
	dir := to.Path
	err := to.Err
	if to.Presence == host.Present && !to.IsDir() {
		dir, _, err = s.host.GitDir(dot, "gitdir: ")
		known = true
	}
	switch {
	case host.Unsure(err):
		return []Change{s.closed(dot)}
	case err != nil, known && slices.Contains(s.audit.Repos, dir):
		return nil
	}
	return s.strange(dir, sub)
}

// charged returns a host whose Lstat subtracts the path's length from left. The kernel's time
// grows with the length, and a few bytes of an index can name many long paths.
func charged(h *host.Host, left *int) *host.Host {
	c := *h
	c.Lstat = func(p string) (host.Stat, error) {
		*left -= len(p)
		return h.Lstat(p)
	}
	return &c
}

// below reports whether a gitlink is inside the working tree. Git makes none for the tree
// itself; one can result from reading an index with the wrong hash length.
func below(sub, tree string) bool { return sub != tree && host.Within(sub, tree) }

// noteLinks records the gitlinks of a working tree, if a repository in it is protected.
func (s *Snapshot) noteLinks(index, tree string) {
	inner := func(dir string) bool { return host.Within(dir, tree) && path.Dir(dir) != tree }
	if !slices.ContainsFunc(s.audit.Repos, inner) {
		return
	}
	links, _ := indexed(index, &s.left) // it is reported once it changes
	for _, p := range links {
		s.links[path.Join(tree, p)] = true
	}
}

// maxIndexes is how many bytes of all indexes of a writable tree are read, enough for some
// million files. A command may leave many sparse ones. The limit also covers the memory for
// gitlinks, since an index of version 4 repeats a long name in a few bytes: each gitlink counts
// as linkSize bytes plus its name.
const (
	maxIndexes = 128 << 20
	linkSize   = 1 << 10
)

// readIndex reads an index, which may be any kind of file by now. If it has more than left
// bytes, readIndex returns nothing and sets left to 0, so that no other index is read either.
// There is no error if there is no index.
func readIndex(name string, left *int) ([]byte, error) {
	b, err := files.Read(name, int64(max(0, *left)))
	var errno syscall.Errno
	*left -= len(b)
	if err != nil && !errors.As(err, &errno) {
		*left = 0
	}
	if host.Missing(err) {
		err = nil
	}
	return b, err
}

// indexed returns the gitlinks of an index, with those of its shared index. With an error they
// are not all.
func indexed(file string, left *int) (out []string, unread error) {
	if !files.MayHave(file, left, len(sharedIndex), mayLink) {
		return nil, nil
	}
	text, unread := readIndex(file, left)
	for _, hash := range []int{20, 32} { // SHA-1, SHA-256
		links, shared, ok := parseIndex(text, hash, false, left)
		out = append(out, links...)
		if !ok || shared == "" {
			continue
		}
		// A gitlink without a name takes the place of any entry there.
		base, err := readIndex(path.Join(path.Dir(file), "sharedindex."+shared), left)
		if err != nil {
			unread = err
		}
		links, _, _ = parseIndex(base, hash, slices.Contains(links, ""), left)
		out = append(out, links...)
	}
	return out, unread
}

// gitlinkMode is a gitlink's mode in an index. sharedIndex begins the extension that names the
// shared index.
const gitlinkMode, sharedIndex = "\x00\x00\xe0\x00", "link"

// mayLink reports whether a piece of an index has either of them. Many file names contain
// "link", but few end in it. After sharedIndex comes its size, whose first byte is too small
// for a character of a name. For gitlinkMode it searches for the third byte, which is the
// rarest.
func mayLink(b []byte) bool {
	for rest, found := b, true; found; {
		_, rest, found = bytes.Cut(rest, []byte(sharedIndex))
		if len(rest) > 0 && rest[0] < ' ' {
			return true
		}
	}
	for i := 0; ; i++ {
		n := bytes.IndexByte(b[i:], gitlinkMode[2])
		if n < 0 {
			return false
		}
		i += n
		if i >= 2 && bytes.HasPrefix(b[i-2:], []byte(gitlinkMode)) {
			return true
		}
	}
}

// parseIndex parses an index of version 2 to 4 (gitformat-index(5)) with object names of hash
// bytes. It returns the gitlinks, until left is used up, and the name of the shared index, or
// "". With all, every entry counts as a gitlink.
func parseIndex(b []byte, hash int, all bool, left *int) (links []string, shared string, ok bool) {
	const gitlink, kind = 0o160000, 0o170000
	if len(b) < 12+hash || string(b[:4]) != "DIRC" {
		return nil, "", false
	}
	r := indexReader{b: b, hash: hash, version: binary.BigEndian.Uint32(b[4:]), at: 12, end: len(b) - hash}
	for range binary.BigEndian.Uint32(b[8:]) {
		mode, ok := r.next()
		if !ok {
			return nil, "", false
		}
		if !all && mode&kind != gitlink {
			continue
		}
		*left -= linkSize + len(r.name)
		if *left <= 0 {
			return links, "", false
		}
		links = append(links, string(r.name))
	}
	return links, r.shared(), true
}

// indexReader reads an index, first its entries, then its extensions.
type indexReader struct {
	b       []byte
	hash    int // the length of object names
	version uint32
	at, end int    // what is not read yet
	name    []byte // of the last entry
}

// next reads an entry and returns its mode. ok is false if the index is damaged.
func (r *indexReader) next() (mode uint32, ok bool) {
	const extended = 0x4000
	start := r.at
	fixed := 42 + r.hash
	if start+fixed+2 > r.end {
		return 0, false
	}
	if r.version > 2 && binary.BigEndian.Uint16(r.b[start+fixed-2:])&extended != 0 {
		fixed += 2
	}
	r.at += fixed
	keep := 0 // how much of the last name the new one begins with
	if r.version > 3 {
		strip, n := offset(r.b[r.at:r.end])
		if n == 0 || strip > len(r.name) {
			return 0, false
		}
		keep = len(r.name) - strip
		r.at += n
	}
	n := bytes.IndexByte(r.b[r.at:r.end], 0)
	if n < 0 {
		return 0, false
	}
	r.name = append(r.name[:keep], r.b[r.at:r.at+n]...)
	r.at += n + 1
	if r.version < 4 { // padded to a multiple of eight
		r.at = start + (r.at-1-start+8)&^7
	}
	return binary.BigEndian.Uint32(r.b[start+24:]), true
}

// shared returns the name of the shared index, or "".
func (r *indexReader) shared() (name string) {
	for r.at+8+r.hash <= r.end {
		if string(r.b[r.at:r.at+4]) == sharedIndex {
			name = hex.EncodeToString(r.b[r.at+8 : r.at+8+r.hash])
			if strings.Trim(name, "0") == "" {
				name = ""
			}
		}
		r.at += 8 + int(binary.BigEndian.Uint32(r.b[r.at+4:]))
	}
	return name
}

// offset decodes a number in the encoding of git's pack offsets. It returns the length too, 0
// if there is no number.
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

// strange returns what is in a git directory, and not in one that git-init(1) or git-clone(1)
// made, from which git runs nothing: hooks except samples, other configuration files, settings
// that name a program, and other repositories in its index, which git status would look into.
// What can't be looked at counts as strange.
func (s *Snapshot) strange(dir, tree string) (out []Change) {
	is := func(p string) { out = append(out, Change{Path: p, New: true}) }
	may := func(at host.Found, p string) bool {
		if at.Presence == host.Unknown {
			out = append(out, s.closed(p))
		}
		return at.Presence == host.Present
	}
	for _, name := range []string{
		"commondir", "config.worktree", "modules", "worktrees", "rebase-merge", "rebase-apply", "sequencer",
		"remotes", "lazygit.yml", "glab-cli", "sl",
	} {
		if p := path.Join(dir, name); may(s.host.Look(p), p) {
			is(p)
		}
	}
	for _, name := range []string{"", "hooks", "branches"} {
		p := path.Join(dir, name)
		at := s.host.Look(p)
		if may(at, p) && !at.IsDir() {
			is(p)
		}
	}
	for _, p := range s.entries(path.Join(dir, "branches"), may) {
		is(p)
	}
	for _, p := range s.entries(path.Join(dir, "hooks"), may) {
		if !strings.HasSuffix(p, ".sample") {
			is(p)
		}
	}
	index := path.Join(dir, "index")
	links, err := indexed(index, &s.left)
	for _, p := range links {
		if dot := path.Join(tree, p, ".git"); may(s.host.Look(dot), dot) {
			is(dot)
		}
	}
	if err != nil || s.left <= 0 { // not all was read
		is(index)
	}
	config := path.Join(dir, "config")
	has := s.host.Look(config).Presence
	switch {
	case has == host.Absent && len(out) == 0:
		is(dir)
	case has != host.Absent && !plainFile(s.host, config):
		is(config)
	}
	return out
}

// maxNamedEntries is how many entries of a directory in a new repository are named.
const maxNamedEntries = 100

// entries returns the paths of a directory's entries, at most maxNamedEntries.
func (s *Snapshot) entries(dir string, may func(at host.Found, p string) bool) (out []string) {
	in := host.ListAll(s.host, dir)
	if in.Unread != nil {
		may(host.Found{Err: in.Unread}, dir)
	}
	for _, e := range in.All[:min(len(in.All), maxNamedEntries)] {
		out = append(out, path.Join(dir, e.Name()))
	}
	if len(in.All) > maxNamedEntries {
		out = append(out, dir)
	}
	return out
}

// plainFile reports whether a git configuration can be read and is a plain one.
func plainFile(h *host.Host, config string) bool {
	if !h.Look(config).IsRegular() {
		return false
	}
	text, err := h.ReadFile(config)
	return err == nil && plainConfig(string(text))
}

// plainConfig reports whether a configuration is valid and has only settings that make git run
// nothing.
func plainConfig(text string) bool {
	harmless := map[string][]string{
		"core": {
			"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase",
			"precomposeunicode", "symlinks",
		},
		"remote":     {"url", "fetch"},
		"branch":     {"remote", "merge"},
		"user":       {"name", "email"},
		"extensions": {"objectformat", "refstorage"},
		"init":       {"defaultbranch"},
	}
	settings, bad := gitconfig.Read(text)
	return bad == 0 && !slices.ContainsFunc(settings, func(s gitconfig.Setting) bool {
		transport := s.Key == "url" && strings.Contains(s.Value, "::") // git runs a program for it
		return transport || !slices.Contains(harmless[s.Section], s.Key)
	})
}
