package landlock

import (
	"io/fs"
	"math/bits"
	"testing"

	"pgregory.net/rapid"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/policy"
)

func TestABITable(t *testing.T) {
	tests := []struct{ fs, net, scoped int }{ // how many rights
		{0, 0, 0},
		{13, 0, 0},
		{14, 0, 0},
		{15, 0, 0},
		{15, 2, 0},
		{16, 2, 0},
		{16, 2, 2},
		{16, 2, 2},
		{16, 2, 2},
		{17, 2, 2},
		{17, 4, 2},
		{17, 4, 2},
	}
	if len(tests) != MaxABI+1 {
		t.Fatalf("%d versions, want %d", MaxABI+1, len(tests))
	}
	for v, tt := range tests {
		a, before := Of(v), Of(v-1)
		if bits.OnesCount64(a.FS) != tt.fs || bits.OnesCount64(a.Net) != tt.net ||
			bits.OnesCount64(a.Scoped) != tt.scoped {
			t.Errorf("ABI %d: %+v, want %+v", v, a, tt)
		}
		if before.FS&^a.FS != 0 || before.Net&^a.Net != 0 {
			t.Errorf("ABI %d lost rights", v)
		}
		if (a.Linux == "") != (v == 0) {
			t.Errorf("ABI %d is of Linux %q", v, a.Linux)
		}
	}
	for _, v := range []int{12, 99} {
		if Of(v) != Of(MaxABI) {
			t.Errorf("ABI %d is not treated as %d", v, MaxABI)
		}
	}
	if Of(-1) != (ABI{}) {
		t.Error("ABI -1 knows something")
	}
	if len(FSNames) != 17 || len(NetNames) != 4 || len(ScopeNames) != 2 {
		t.Error("names are missing")
	}
}

func TestRestrictFlags(t *testing.T) {
	for version, want := range map[int]uint32{1: 0, 6: 0, 7: 2, 11: 2} {
		if got := (&Ruleset{ABI: version}).RestrictFlags(); got != want {
			t.Errorf("ABI %d: flags %#x, want %#x", version, got, want)
		}
	}
}

func TestRights(t *testing.T) {
	const (
		dir  = fs.ModeDir
		char = fs.ModeDevice | fs.ModeCharDevice
		rw   = policy.Read | policy.Write
		all  = policy.Read | policy.Write | policy.Exec
	)
	tests := []struct {
		access policy.Access
		path   string
		mode   fs.FileMode
		abi    int
		want   string
	}{
		{policy.Read, "/etc", dir, 11, "read_file read_dir"},
		{policy.Read, "/etc/passwd", 0, 11, "read_file"},
		{policy.Read | policy.Exec, "/usr", dir, 11, "execute read_file read_dir"},
		{policy.Read | policy.Exec, "/bin/sh", 0, 11, "execute read_file"},
		{rw, "/d", dir, 1, "write_file read_file read_dir remove_dir remove_file make_dir make_reg make_sock make_fifo make_sym"},
		{rw, "/d", dir, 2, "write_file read_file read_dir remove_dir remove_file make_dir make_reg make_sock make_fifo make_sym refer"},
		{all, "/d", dir, 11, "execute write_file read_file read_dir remove_dir remove_file make_dir make_reg make_sock make_fifo make_sym refer truncate"},
		{rw, "/f", 0, 2, "write_file read_file"},
		{rw, "/f", 0, 3, "write_file read_file truncate"},
		{rw, "/dev/tty", char, 4, "write_file read_file truncate"},
		{rw, "/dev/tty", char, 5, "write_file read_file truncate ioctl_dev"},
		{rw, "/dev/pts", dir, 5, "write_file read_file read_dir remove_dir remove_file make_dir make_reg make_sock make_fifo make_sym refer truncate ioctl_dev"},
		{policy.Read, "/dev/tty", char, 5, "read_file"},
		{rw, "/device", dir, 5, "write_file read_file read_dir remove_dir remove_file make_dir make_reg make_sock make_fifo make_sym refer truncate"},
		{rw, "/run/s", fs.ModeSocket, 11, "write_file read_file truncate"},
		{all, "/d", dir, 0, "none"},
		{0, "/d", dir, 11, "none"},
	}
	for _, tt := range tests {
		got := Rights(tt.access, tt.path, tt.mode, Of(tt.abi).FS)
		if s := BitNames(got, FSNames[:]); s != tt.want {
			t.Errorf("%s %s ABI %d: %s\nwant %s", tt.access, tt.path, tt.abi, s, tt.want)
		}
	}
}

func TestMergeRules(t *testing.T) {
	const r, w, x = FSReadFile, FSWriteFile, FSExecute
	rule := func(path string, rights uint64, dir bool) PathRule {
		return PathRule{Path: path, Rights: rights, Dir: dir}
	}
	tests := []struct {
		name     string
		in, want []PathRule
	}{
		{"none", nil, nil},
		{"joined", []PathRule{rule("/a", r, true), rule("/a", w, true)}, []PathRule{rule("/a", r|w, true)}},
		{"nested", []PathRule{rule("/a/b", r, true), rule("/a", r|w, true)}, []PathRule{rule("/a", r|w, true)}},
		{"nested with more", []PathRule{rule("/a/b", r|w, true), rule("/a", r, true)},
			[]PathRule{rule("/a", r, true), rule("/a/b", r|w, true)}},
		{"two ancestors", []PathRule{rule("/a", r, true), rule("/a/b", w, true), rule("/a/b/c", r|w, false)},
			[]PathRule{rule("/a", r, true), rule("/a/b", w, true)}},
		{"like a prefix", []PathRule{rule("/a", r, true), rule("/a-b", r, true), rule("/a/b", r, true), rule("/ab", r, true)},
			[]PathRule{rule("/a", r, true), rule("/a-b", r, true), rule("/ab", r, true)}},
		{"root", []PathRule{rule("/x", r, true), rule("/", r, true), rule("/y", x, true)},
			[]PathRule{rule("/", r, true), rule("/y", x, true)}},
		{"a file is no ancestor", []PathRule{rule("/a", r, false), rule("/a/b", r, false)},
			[]PathRule{rule("/a", r, false), rule("/a/b", r, false)}},
	}
	for _, tt := range tests {
		got := MergeRules(tt.in)
		if len(got) != len(tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
			continue
		}
		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
			}
		}
	}
}

// TestMergeKeepsRights: each path has the same rights before and after, whatever the rules.
func TestMergeKeepsRights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "a-", "a0", "c"})
		path := rapid.Custom(func(t *rapid.T) string {
			p := ""
			for _, e := range rapid.SliceOfN(name, 0, 4).Draw(t, "names") {
				p += "/" + e
			}
			if p == "" {
				return "/"
			}
			return p
		})
		rules := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) PathRule {
			return PathRule{Path: path.Draw(t, "path"), Rights: uint64(rapid.IntRange(1, 15).Draw(t, "rights")), Dir: true}
		}), 0, 12).Draw(t, "rules")
		merged := MergeRules(rules)
		if len(merged) > len(rules) {
			t.Fatalf("%d rules became %d", len(rules), len(merged))
		}
		for range 20 {
			p := path.Draw(t, "probe")
			if a, b := rightsAt(rules, p), rightsAt(merged, p); a != b {
				t.Fatalf("%s had %#x, has %#x\n%v\n%v", p, a, b, rules, merged)
			}
		}
		for i := range merged {
			rest := append(append([]PathRule(nil), merged[:i]...), merged[i+1:]...)
			if rightsAt(rest, merged[i].Path) == rightsAt(merged, merged[i].Path) {
				t.Fatalf("%v adds nothing to %v", merged[i], rest)
			}
		}
	})
}

// rightsAt returns what a set of directory rules allows on a path.
func rightsAt(rules []PathRule, path string) (r uint64) {
	for _, rule := range rules {
		if host.Within(path, rule.Path) {
			r |= rule.Rights
		}
	}
	return r
}
