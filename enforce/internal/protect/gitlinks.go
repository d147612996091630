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
	for _, p := range indexed(index, &s.left) {
		if s.left <= 0 {
			break
		}
		dot := path.Join(tree, p, ".git")
		dir, st, err := s.host.RealPath(dot)
		known := s.links[path.Join(tree, p)]
		if err == nil && !st.Mode.IsDir() {
			dir, _, err = s.host.GitDir(dot, "gitdir: ")
			known = true
		}
		if err == nil && below(path.Dir(dot), tree) && !(known && slices.Contains(s.audit.Repos, dir)) && !plain(s.host, dir, path.Join(tree, p), &s.left) {
			out = append(out, Change{Path: dot, New: true})
		}
	}
	if s.left <= 0 {
		out = append(out, Change{Path: index})
	}
	return out
}

// charged is a host that takes the length of each path that is looked at off what is left.
// The kernel takes as long for a path, and a few bytes of an index name many long ones.
func charged(host *policy.Host, left *int) *policy.Host {
	c := *host
	c.Lstat = func(p string) (policy.Stat, error) {
		*left -= len(p)
		return host.Lstat(p)
	}
	return &c
}

// below reports whether a gitlink leads into the working tree. One to the tree itself is
// none that git has made; it can be what object names of another length are read as.
func below(sub, tree string) bool { return sub != tree && policy.Within(sub, tree) }

// noteLinks remembers the gitlinks of a working tree, if a repository in it is protected.
func (s *Snapshot) noteLinks(index, tree string) {
	inner := func(dir string) bool { return policy.Within(dir, tree) && path.Dir(dir) != tree }
	if !slices.ContainsFunc(s.audit.Repos, inner) {
		return
	}
	for _, p := range indexed(index, &s.left) {
		s.links[path.Join(tree, p)] = true
	}
}

// maxIndexes bounds how much of all indexes of a writable tree is read at once, in bytes:
// some million files. Who made them may have sparse ones without number. It bounds what
// their gitlinks take, too, as an index of version 4 has a long name again in a few bytes:
// each counts for linkSize bytes and its name.
const (
	maxIndexes = 128 << 20
	linkSize   = 1 << 10
)

// readIndex reads a file that may be anything by now. Of one that has more bytes than
// are left to be read nothing is, and of those that follow neither.
func readIndex(name string, left *int) []byte {
	b, err := files.Read(name, int64(max(0, *left)))
	var errno syscall.Errno
	if *left -= len(b); err != nil && !errors.As(err, &errno) {
		*left = 0
	}
	return b
}

// indexed are the gitlinks of an index, with those of the index that it shares.
func indexed(file string, left *int) (out []string) {
	if !files.MayHave(file, left, len(gitlinkMode)-1, mayLink) {
		return nil
	}
	text := readIndex(file, left)
	for _, hash := range []int{20, 32} { // SHA-1, SHA-256
		links, shared, ok := parseIndex(text, hash, false, left)
		if out = append(out, links...); !ok || shared == "" {
			continue
		}
		// A gitlink without a name takes the place of any entry there.
		base := readIndex(path.Join(path.Dir(file), "sharedindex."+shared), left)
		links, _, _ = parseIndex(base, hash, slices.Contains(links, ""), left)
		out = append(out, links...)
	}
	return out
}

// gitlinkMode is the mode of a gitlink in an index, sharedIndex what begins the part that
// names another one.
const gitlinkMode, sharedIndex = "\x00\x00\xe0\x00", "link"

// mayLink reports whether a piece of an index has either. Few bytes are as the third one
// of a gitlink's mode.
func mayLink(b []byte) bool {
	for i := 0; ; i++ {
		n := bytes.IndexByte(b[i:], gitlinkMode[2])
		if n < 0 {
			return bytes.Contains(b, []byte(sharedIndex))
		}
		if i += n; i >= 2 && bytes.HasPrefix(b[i-2:], []byte(gitlinkMode)) {
			return true
		}
	}
}

// parseIndex reads an index of version 2 to 4 (gitformat-index(5)), whose object names
// have some bytes: its gitlinks, as far as they may take what is left, and the name of the
// index that it shares, or "". With all, every entry is taken for a gitlink.
func parseIndex(b []byte, hash int, all bool, left *int) (links []string, shared string, ok bool) {
	const gitlink, kind, extended = 0o160000, 0o170000, 0x4000
	word := binary.BigEndian.Uint32
	if len(b) < 12+hash || string(b[:4]) != "DIRC" {
		return nil, "", false
	}
	version, at, end := word(b[4:]), 12, len(b)-hash
	var name []byte
	for range word(b[8:]) {
		start, fixed := at, 42+hash
		if at+fixed+2 > end {
			return nil, "", false
		}
		if version > 2 && binary.BigEndian.Uint16(b[at+fixed-2:])&extended != 0 {
			fixed += 2
		}
		if at += fixed; version > 3 {
			strip, n := offset(b[at:end])
			if n == 0 || strip > len(name) {
				return nil, "", false
			}
			name, at = name[:len(name)-strip], at+n
		} else {
			name = name[:0]
		}
		n := bytes.IndexByte(b[at:end], 0)
		if n < 0 {
			return nil, "", false
		}
		name = append(name, b[at:at+n]...)
		if at += n + 1; version < 4 {
			at = start + (at-1-start+8)&^7
		}
		if all || word(b[start+24:])&kind == gitlink {
			if *left -= linkSize + len(name); *left <= 0 {
				return links, "", false
			}
			links = append(links, string(name))
		}
	}
	for at+8+hash <= end {
		if string(b[at:at+4]) == sharedIndex {
			if shared = hex.EncodeToString(b[at+8 : at+8+hash]); strings.Trim(shared, "0") == "" {
				shared = ""
			}
		}
		at += 8 + int(word(b[at+4:]))
	}
	return links, shared, true
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

// plain reports whether the git directory of a working tree is as git-init(1),
// git-clone(1) and programs that call them make it: no hook but samples, nobody else's
// configuration, in its own none but settings that name no program, and no other
// repository in its index, which git status would look into. git does with it what it
// does anywhere, so there is nothing to tell.
func plain(host *policy.Host, dir, tree string, left *int) bool {
	for _, name := range []string{"commondir", "config.worktree", "modules", "worktrees", "rebase-merge", "sequencer", "remotes", "lazygit.yml"} {
		if _, err := host.Lstat(path.Join(dir, name)); err == nil {
			return false
		}
	}
	if urls, _ := policy.ReadSome(host, path.Join(dir, "branches"), 1); len(urls) > 0 {
		return false
	}
	for _, name := range []string{"", "hooks"} {
		if st, err := host.Lstat(path.Join(dir, name)); err == nil && !st.Mode.IsDir() {
			return false
		}
	}
	hooks, _ := policy.ReadSome(host, path.Join(dir, "hooks"), maxWatchedEntries)
	for _, h := range hooks {
		if !strings.HasSuffix(h.Name(), ".sample") {
			return false
		}
	}
	for _, p := range indexed(path.Join(dir, "index"), left) {
		if _, err := host.Lstat(path.Join(tree, p, ".git")); err == nil {
			return false
		}
	}
	if *left <= 0 {
		return false // nobody has looked
	}
	st, err := host.Lstat(path.Join(dir, "config"))
	if err != nil || !st.Mode.IsRegular() || len(hooks) == maxWatchedEntries {
		return false
	}
	config, err := host.ReadFile(path.Join(dir, "config"))
	return err == nil && plainConfig(string(config))
}

// plainConfig reports whether git understands all of a configuration, and none of its
// settings has it run anything.
func plainConfig(text string) bool {
	harmless := map[string][]string{
		"core":   {"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks"},
		"remote": {"url", "fetch"}, "branch": {"remote", "merge"}, "user": {"name", "email"},
		"extensions": {"objectformat", "refstorage"}, "init": {"defaultbranch"},
	}
	settings, bad := gitconfig.Read(text)
	return bad == 0 && !slices.ContainsFunc(settings, func(s gitconfig.Setting) bool {
		transport := s.Key == "url" && strings.Contains(s.Value, "::") // which runs a program
		return transport || !slices.Contains(harmless[s.Section], s.Key)
	})
}
