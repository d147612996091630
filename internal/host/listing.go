package host

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"
)

// Listing is the content of a directory, so that names in it need not be looked up one by
// one.
type Listing struct {
	Dir     string
	Entries []fs.DirEntry // sorted by name; only the first ones of a big directory
	All     []fs.DirEntry // nil unless ListAll made it; unsorted for a big directory

	// Unread is why the directory can't be listed, nil if it was, or if there is none. Then it
	// has no entries here, and may have any.
	Unread error

	names map[string]bool // in lower case; nil if some may be missing
}

// MaxListed is how many entries of a directory are looked at one by one. Looking up some
// fifty names takes as long as reading a few hundred.
const MaxListed = 256

// List reads a directory.
func List(host *Host, dir string) *Listing {
	l := ListFirst(host, dir, MaxListed+1)
	l.All = nil
	return l
}

// ListAll is List with all entries of a big directory.
func ListAll(host *Host, dir string) *Listing { return ListFirst(host, dir, -1) }

// ListFirst is ListAll with only the first n entries of a directory, or all if n is -1.
func ListFirst(host *Host, dir string, n int) *Listing {
	l := &Listing{Dir: dir}
	all, err := host.readDir(dir, n)
	if err != nil && !Missing(err) {
		l.Unread = err
		return l
	}
	l.Entries = all
	l.All = all
	if len(all) > MaxListed+1 {
		l.Entries = slices.Clone(all[:MaxListed+1])
	}
	sortEntries(l.Entries)
	if len(l.Entries) > MaxListed {
		return l
	}
	l.names = make(map[string]bool, len(l.Entries))
	for _, e := range l.Entries {
		if strings.ContainsFunc(e.Name(), func(r rune) bool { return r >= utf8.RuneSelf }) {
			l.names = nil
			break
		}
		l.names[strings.ToLower(e.Name())] = true
	}
	return l
}

// Lacks reports whether a path below the directory, in ASCII, certainly does not exist,
// because nothing there has its first name. A file system may take "A" for "a" (ext4's
// casefold, vfat, APFS), and letters beyond ASCII for others. So with such an entry
// nothing is certain.
func (l *Listing) Lacks(below string) bool {
	first, _, _ := strings.Cut(below, "/")
	return l.names != nil && !l.names[strings.ToLower(first)]
}

// Entries returns the first n entries of a directory, sorted, or all if n is -1.
func (h *Host) Entries(dir string, n int) ([]fs.DirEntry, error) {
	entries, err := h.readDir(dir, n)
	sortEntries(entries)
	return entries, err
}

// Unsorted returns all entries of a directory, in any order.
func (h *Host) Unsorted(dir string) ([]fs.DirEntry, error) { return h.readDir(dir, -1) }

// readDir is Entries in any order. Of a directory that can't be read to its end it returns none.
func (h *Host) readDir(dir string, n int) ([]fs.DirEntry, error) {
	if h.ReadDir == nil {
		return nil, errors.ErrUnsupported
	}
	entries, err := h.ReadDir(dir, n)
	if err != nil {
		return nil, err
	}
	return entries, nil
}

func sortEntries(entries []fs.DirEntry) {
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
}
