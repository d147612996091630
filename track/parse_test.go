package track

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseStat(t *testing.T) {
	tail := " S 77 12 11 34816 12 4194560 1 0 0 0 3 1 0 0 20 0 1 0 4711 1000 2 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
	for _, name := range []string{"sh", "a b", "(", ")", ") S 1 (", "a) R 9 9 9", ""} {
		p, err := parseStat([]byte("123 (" + name + ")" + tail))
		want := Proc{ProcID: ProcID{123, 4711}, Parent: 77, Group: 12, Session: 11, State: "S", Name: name}
		if err != nil || !reflect.DeepEqual(p, want) {
			t.Errorf("%q: %+v, %v", name, p, err)
		}
	}
	for _, bad := range []string{"", "1", "1 (x", "1 (x) S 1", "x (x)" + tail, "1 (x) S a" + tail[5:]} {
		if p, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, p)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("1 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parseStat(b)
		if err == nil && strings.Contains(string(b), "\x00") == false && !strings.Contains(string(b), "("+p.Name+")") {
			t.Fatalf("%q: name %q", b, p.Name)
		}
	})
}

func TestParseStatus(t *testing.T) {
	in := "Name:\tUid:\nUid:\t1000\t1001\t1002\t1003\nGid:\t1\t1\t1\t1\nNSpid:\t77\t1\nThreads:\t3\nSigBlk:\tfffffffffffbfeff\n"
	if st, err := parseStatus([]byte(in)); err != nil || st != (procStatus{uid: 1001, threads: 3, blocked: allBlocked, depth: 2, inner: 1}) {
		t.Errorf("%+v, %v", st, err)
	}
	if st, err := parseStatus([]byte("Uid:\t1\t2\t3\t4\n")); err != nil || st != (procStatus{uid: 2, depth: 1}) {
		t.Errorf("%+v, %v", st, err)
	}
	for _, bad := range []string{"", "Uid:\n", "Uid:\t1\n", "Uid:\tx y\n", "Name:\tUid:\n"} {
		if st, err := parseStatus([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, st)
		}
	}
}

func TestParseSelfCgroup(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"0::/user.slice/user-1000.slice/session-1.scope\n", "/user.slice/user-1000.slice/session-1.scope"},
		{"9:name=systemd:/\n4:memory:/x\n0::/\n", "/"},
		{"0::/a b/c:d\n", "/a b/c:d"},
		{"0::/gone (deleted)\n", "/gone"},
		{"0::/../x\n", "/../x"},
	} {
		if got, err := parseSelfCgroup(strings.NewReader(tt.in)); err != nil || got != tt.want {
			t.Errorf("%q: %q, %v", tt.in, got, err)
		}
	}
	for _, bad := range []string{"", "1:cpu:/\n", "0::\n"} {
		if got, err := parseSelfCgroup(strings.NewReader(bad)); err == nil {
			t.Errorf("%q: %q", bad, got)
		}
	}
}

func TestParseCgroupMounts(t *testing.T) {
	in := `23 1 0:22 / /sys rw,nosuid shared:7 - sysfs sysfs rw
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 master:1 - cgroup2 cgroup2 rw
42 31 0:38 /docker/x /mnt/a\040b\011c\134 ro - cgroup2 none ro
nonsense
`
	got := cgroupMounts([]byte(in))
	want := []cgroupMount{{"/", "/sys/fs/cgroup/unified"}, {"/docker/x", "/mnt/a b\tc\\"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestCgroupDirs(t *testing.T) {
	root := []cgroupMount{{"/", "/cg"}}
	for _, tt := range []struct {
		group  string
		mounts []cgroupMount
		want   []string
	}{
		{"/", root, []string{"/cg"}},
		{"/a/b", root, []string{"/cg/a/b", "/cg/a", "/cg"}},
		{"/a/b", []cgroupMount{{"/a", "/cg"}}, []string{"/cg/b", "/cg"}},
		{"/ab", []cgroupMount{{"/a", "/cg"}}, nil},
		{"/x", []cgroupMount{{"/a", "/cg"}}, nil},
		{"/../a", root, nil},
		{"/a", []cgroupMount{{"/", "/old"}, {"/", "/new"}}, []string{"/new/a", "/new", "/old/a", "/old"}},
		{"/a", nil, nil},
	} {
		if got := cgroupDirs(tt.group, tt.mounts); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s in %v: %v, want %v", tt.group, tt.mounts, got, tt.want)
		}
	}
}

func TestParseEvents(t *testing.T) {
	for in, want := range map[string][2]bool{"populated 1\nfrozen 0\n": {true, false}, "frozen 1\npopulated 0\n": {false, true}} {
		p, fr, err := parseEvents([]byte(in))
		if err != nil || p != want[0] || fr != want[1] {
			t.Errorf("%q: %v %v %v", in, p, fr, err)
		}
	}
	if _, _, err := parseEvents([]byte("frozen 0\n")); err == nil {
		t.Error("an answer without an answer was accepted")
	}
}

func TestCgroupRefOurs(t *testing.T) {
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
		if got := (&CgroupRef{Path: path}).ours(id); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestTableBelow(t *testing.T) {
	tab := table{}
	for pid, parent := range map[int]int{10: 1, 11: 10, 12: 11, 13: 10, 20: 1, 30: 31, 31: 30} {
		tab[pid] = Proc{ProcID: ProcID{Pid: pid, Start: 5}, Parent: parent}
	}
	c := tab.children()
	if got := len(tab.below(10, c)); got != 3 {
		t.Errorf("%d below 10", got)
	}
	if got := len(tab.below(30, c)); got != 1 { // a ring, as a snapshot of a changing system may have
		t.Errorf("%d below 30", got)
	}
	if !tab.has(ProcID{10, 5}) || tab.has(ProcID{10, 6}) || tab.has(ProcID{}) {
		t.Error("has")
	}
}
