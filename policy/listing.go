package policy

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"
)

// Listing is what is in a directory, so that names in it need not be looked for one
// by one.
type Listing struct {
	Dir     string
	Entries []fs.DirEntry // sorted by name; of a big directory those that come first in it

	names map[string]bool // in lower case; nil where some may be missing in it
}

// MaxListed is how many entries of a directory are read at most: to look for some
// fifty names one by one takes as long as to read a few hundred.
const MaxListed = 256

// List reads a directory. Of one that can't be read nothing is known.
func List(host *Host, dir string) *Listing {
	l := &Listing{Dir: dir}
	entries, err := ReadSome(host, dir, MaxListed+1)
	if err != nil {
		return l
	}
	l.Entries = entries
	if len(entries) > MaxListed {
		return l
	}
	l.names = make(map[string]bool, len(entries))
	for _, e := range entries {
		if strings.ContainsFunc(e.Name(), func(r rune) bool { return r >= utf8.RuneSelf }) {
			l.names = nil
			break
		}
		l.names[strings.ToLower(e.Name())] = true
	}
	return l
}

// Lacks reports whether a path below the directory, in ASCII, is certain not to
// exist, since nothing there has its first name. A file system may take "A" for "a"
// (ext4's casefold, vfat, APFS), and letters beyond ASCII for others, so that such an
// entry leaves everything open.
func (l *Listing) Lacks(below string) bool {
	first, _, _ := strings.Cut(below, "/")
	return l.names != nil && !l.names[strings.ToLower(first)]
}

// ReadSome lists at most n entries of a directory.
func ReadSome(host *Host, dir string, n int) ([]fs.DirEntry, error) {
	switch {
	case host.ReadSome != nil:
	case host.ReadDir != nil:
		return host.ReadDir(dir)
	default:
		return nil, errors.ErrUnsupported
	}
	entries, err := host.ReadSome(dir, n)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}
