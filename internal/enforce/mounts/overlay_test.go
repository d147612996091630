package mounts

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/procfs"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

func TestOverlays(t *testing.T) {
	path := func(p, from string, mode fs.FileMode) resolve.Path {
		rule := policy.Rule{Origin: policy.Origin{Source: from}, Data: from == "preset rust"}
		return resolve.Path{Path: p, Access: policy.Read | policy.Write, Mode: mode, Rule: rule}
	}
	table := func(points ...string) func() Table {
		var out Table
		for _, p := range points {
			out.Mounts = append(out.Mounts, procfs.Mount{Point: p, Root: "/", Dev: p})
		}
		return func() Table { return out }
	}
	usual := []resolve.Path{
		path("/dev/shm", "baseline", fs.ModeDir),
		path("/home/u/.cargo", "preset rust", fs.ModeDir),
		path("/tmp/zsbx.1", "zsbx", fs.ModeDir),
		path("/w", "--rw", fs.ModeDir),
		path("/w/in", "--rw", fs.ModeDir),
	}
	for _, c := range []struct {
		name      string
		paths     []resolve.Path
		try       Try
		table     func() Table
		want, why string
	}{
		{name: "usual", table: table("/", "/w", "/wider"), want: "/w"},
		{name: "caches, too", try: Try{All: true}, table: table("/"), want: "/home/u/.cargo /w"},
		{name: "a mount in it", table: table("/", "/w/in/mnt"), why: "/w/in/mnt is a file system that is mounted in /w"},
		{name: "unread", table: func() Table { return Table{Unread: errors.New("no mountinfo")} }, why: "no mountinfo"},
		{name: "a file", paths: []resolve.Path{path("/f", "--rw", 0)}, table: table("/"), why: "/f is a file"},
		{name: "in a cache", paths: []resolve.Path{path("/home/u/.cargo/x", "--rw", fs.ModeDir)}, table: table("/"),
			want: "/home/u/.cargo /w"},
		{name: "everything", paths: []resolve.Path{path("/", "--rw", fs.ModeDir)}, table: table("/"), why: "all of /"},
		{name: "state", try: Try{State: "/w/.local/state"}, table: table("/"), why: "can't overlap"},
		{name: "none", try: Try{None: "no kernel"}, table: table("/"), why: "no kernel"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &resolve.Resolved{TempDir: "/tmp/zsbx.1", Paths: append(c.paths, usual...)}
			r.Writes.Value = "try"
			if c.try.State == "" {
				c.try.State = "/state"
			}
			overlays, why := c.try.Overlays(r, WritableTrees(r.Paths), c.table)
			var got []string
			for _, o := range overlays {
				got = append(got, o.Path)
			}
			if strings.Join(got, " ") != c.want || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
				t.Errorf("layers of %q, %q; want %q, %q", got, why, c.want, c.why)
			}
			r.Writes.Value = "direct"
			if overlays, why := c.try.Overlays(r, WritableTrees(r.Paths), c.table); overlays != nil || why != "" {
				t.Errorf("without try: %v, %q", overlays, why)
			}
		})
	}
}
