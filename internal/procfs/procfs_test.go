package procfs

import (
	"slices"
	"strings"
	"testing"
)

func TestParseStat(t *testing.T) {
	const tail = " S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 0 0"
	for _, name := range []string{"sh", "a b) R 1 1 1", "", "\n", "(", ")", ") S 1 ("} {
		if s, err := ParseStat([]byte("42 (" + name + ")" + tail)); err != nil || s != (Stat{42, name, "S", 7, 8, 9, 1, 12345}) {
			t.Errorf("%q: %+v %v", name, s, err)
		}
	}
	for _, bad := range []string{"", "42", "42 (sh", "42 (sh) S 7", "x (sh)" + tail, "42 (sh) S x 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345"} {
		if _, err := ParseStat([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("1 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParseStat(b)
		if err == nil && strings.Contains(string(b), "\x00") == false && !strings.Contains(string(b), "("+p.Name+")") {
			t.Fatalf("%q: name %q", b, p.Name)
		}
	})
}

func TestMounts(t *testing.T) {
	got := Mounts("23 1 0:22 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n" +
		"42 31 0:38 /docker/x /mnt/a\\040b\\011c\\134 ro - cgroup2 none ro\nnonsense\n1 2 3 4 5 6 7\n")
	want := []Mount{{"23", "0:22", "/", "/sys", "sysfs"}, {"42", "0:38", "/docker/x", "/mnt/a b\tc\\", "cgroup2"}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestStatus(t *testing.T) {
	in := "Name:\tUid:\nUid:\t1000\t1001\t1002\t1003\nGid:\t1\t1\t1\t1\nNSpid:\t77\t1\nThreads:\t3\nSigBlk:\tfffffffffffbfeff\nnonsense\nUid\n"
	got := Status(in)
	for key, want := range map[string][]string{"Name": {"Uid:"}, "Uid": {"1000", "1001", "1002", "1003"}, "NSpid": {"77", "1"}, "Threads": {"3"}, "SigBlk": {"fffffffffffbfeff"}, "Seccomp": nil} {
		if !slices.Equal(got[key], want) {
			t.Errorf("%s: %q", key, got[key])
		}
	}
}
