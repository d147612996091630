package cgroup

import (
	"reflect"
	"testing"
)

// TestDirs: a later mount covers an earlier one. Mounts are not always at /sys/fs/cgroup, and
// not always of the hierarchy's root.
func TestDirs(t *testing.T) {
	mount := func(root, point string) string {
		return "41 31 0:38 " + root + " " + point + " rw,relatime shared:9 - cgroup2 cgroup2 rw\n"
	}
	const others = "23 1 0:22 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n32 31 0:29 / /cg/cpu rw,relatime - cgroup cgroup rw,cpu\nnonsense\n"
	root := mount("/", "/cg")
	for _, tt := range []struct {
		group, mounts string
		want          []string
	}{
		{"/", root, []string{"/cg"}},
		{"/a/b", root, []string{"/cg/a/b", "/cg/a", "/cg"}},
		{"/a/b", mount("/a", "/cg"), []string{"/cg/b", "/cg"}},
		{"/ab", mount("/a", "/cg"), nil},
		{"/x", mount("/a", "/cg"), nil},
		{"/../a", root, nil},
		{"/a", mount("/", "/old") + mount("/", "/new"), []string{"/new/a", "/new", "/old/a", "/old"}},
		{"/docker/x", mount("/docker/x", "/mnt/a\\040b\\134"), []string{"/mnt/a b\\"}},
		{"/a", "", nil},
		{"/a b/c:d", root, []string{"/cg/a b/c:d", "/cg/a b", "/cg"}},
		{"/gone (deleted)", root, []string{"/cg/gone", "/cg"}},
		{"", root, nil},
	} {
		file := "9:name=systemd:/y\n4:memory:/x\n0::" + tt.group + "\n"
		if got, err := dirsOf(file, others+tt.mounts); !reflect.DeepEqual(got, tt.want) || (err == ErrNone) != (tt.want == nil) {
			t.Errorf("%s in %v: %v, %v, want %v", tt.group, tt.mounts, got, err, tt.want)
		}
	}
	for _, file := range []string{"", "1:cpu:/\n"} {
		if got, err := dirsOf(file, root); err != ErrNone {
			t.Errorf("%q: %v, %v", file, got, err)
		}
	}
}

func TestRefOf(t *testing.T) {
	const id = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
	for path, want := range map[string]bool{
		"/sys/fs/cgroup/zsbx-" + id:                 true,
		"/sys/fs/cgroup/a/zsbx-" + id + ".scope":    true,
		"/sys/fs/cgroup":                            false,
		"/sys/fs/cgroup/user.slice":                 false,
		"/sys/fs/cgroup/zsbx-" + id + "/..":         false,
		"zsbx-" + id:                                false,
		"/sys/fs/cgroup/zsbx-" + id[:35] + "0":      false,
		"/sys/fs/cgroup/../x/zsbx-" + id + ".scope": false,
	} {
		if got := (&Group{Path: path}).Of(id); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
