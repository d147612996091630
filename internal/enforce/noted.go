package enforce

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/host"
)

// Noted returns a host that records its first error, of a shortage or a broken disk, that leaves
// unknown whether a file exists. err returns that error. The files did not cause it, so trying
// again may help, and a gap would say the wrong thing.
func Noted(machine *host.Host) (noted *host.Host, err func() error) {
	var mu sync.Mutex // guards first: a big tree is searched by two goroutines
	var first error
	note := func(doing string, err error) {
		if err == nil || fork.ShortageOf(err) == nil && !(doing == "lstat" && errors.Is(err, syscall.EIO)) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if first == nil {
			first = fmt.Errorf("looking at this machine's files: %w", err)
		}
	}
	h := *machine
	h.Lstat = noting(machine.Lstat, "lstat", note)
	h.ReadFile = noting(machine.ReadFile, "read", note)
	h.Readlink = noting(machine.Readlink, "readlink", note)
	h.Failed = func(err error) { note("read", err) }
	if h.ReadDir != nil {
		h.ReadDir = func(name string, n int) ([]fs.DirEntry, error) {
			got, err := machine.ReadDir(name, n)
			note("readdir", err)
			return got, err
		}
	}
	return &h, func() error {
		mu.Lock()
		defer mu.Unlock()
		return first
	}
}

// noting returns a host's function that records its errors. nil stays nil.
func noting[T any](
	f func(name string) (T, error), doing string, note func(doing string, err error),
) func(string) (T, error) {
	if f == nil {
		return nil
	}
	return func(name string) (T, error) {
		got, err := f(name)
		note(doing, err)
		return got, err
	}
}
