package enforce

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/policy"
)

// Noted gives a host that keeps the first answer by which it is not known what
// is there, for err to tell: since this machine is short of something, or the
// disk is broken. What looks for files to deny or protect takes an error for
// "there is none", which such an answer does not say. A nil host stays nil.
func Noted(host *policy.Host) (noted *policy.Host, err func() error) {
	if host == nil {
		return nil, func() error { return nil }
	}
	var first error
	note := func(doing string, err error) {
		if err != nil && first == nil && (fork.ShortageOf(err) != nil || errors.Is(err, syscall.EIO) && doing == "lstat") {
			first = fmt.Errorf("looking at this machine's files: %w", err)
		}
	}
	h := *host
	if h.Lstat != nil {
		h.Lstat = func(name string) (policy.Stat, error) {
			st, err := host.Lstat(name)
			note("lstat", err)
			return st, err
		}
	}
	if h.ReadDir != nil {
		h.ReadDir = func(name string) ([]fs.DirEntry, error) {
			l, err := host.ReadDir(name)
			note("readdir", err)
			return l, err
		}
	}
	if h.ReadSome != nil {
		h.ReadSome = func(name string, n int) ([]fs.DirEntry, error) {
			l, err := host.ReadSome(name, n)
			note("readdir", err)
			return l, err
		}
	}
	if h.ReadFile != nil {
		h.ReadFile = func(name string) ([]byte, error) {
			b, err := host.ReadFile(name)
			note("read", err)
			return b, err
		}
	}
	if h.Readlink != nil {
		h.Readlink = func(name string) (string, error) {
			to, err := host.Readlink(name)
			note("readlink", err)
			return to, err
		}
	}
	return &h, func() error { return first }
}
