package broker

import (
	"io/fs"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce/hosts"
	"github.com/zsbx/zsbx/internal/resolve"
)

// TestResolvers: beside a network by name no socket is allowed that resolves any name, by whatever
// rule. Without such a network it is.
func TestResolvers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "socket")
	_, id := listenAt(t, path)
	fd, err := unix.Open(path, unix.O_PATH, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	defer func(before []string) { resolvers = before }(resolvers)
	resolvers = []string{filepath.Join(dir, "missing"), path}
	for _, rule := range []resolve.Path{
		{Path: path, Mode: fs.ModeSocket, ID: id},
		{Path: dir, Mode: fs.ModeDir},
		{Path: "/", Mode: fs.ModeDir},
	} {
		p := &Policy{Net: resolve.ResolvedNet{Unix: []resolve.Path{rule}}}
		if !p.allows(fd, id) {
			t.Errorf("%s: refused without hosts", rule.Path)
		}
		p.Hosts = &hosts.Config{}
		if p.allows(fd, id) {
			t.Errorf("%s: allowed beside hosts", rule.Path)
		}
	}
}
