package policy

import (
	"io/fs"
	"slices"
	"strings"
)

// ReadSome lists at most n entries of a directory.
func ReadSome(host *Host, dir string, n int) ([]fs.DirEntry, error) {
	if host.ReadSome == nil {
		return host.ReadDir(dir)
	}
	entries, err := host.ReadSome(dir, n)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}
