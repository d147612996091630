package proc

import (
	"encoding/binary"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTableBelow(t *testing.T) {
	tab := &Table{Procs: map[int]Process{}}
	for pid, parent := range map[int]int{10: 1, 11: 10, 12: 11, 13: 10, 20: 1, 30: 31, 31: 30} {
		tab.Procs[pid] = Process{ID: ID{Pid: pid, Start: 5}, Parent: parent}
	}
	if got := len(tab.Below(10)); got != 3 {
		t.Errorf("%d below 10", got)
	}
	if got := len(tab.Below(30)); got != 1 { // a cycle, which a snapshot of a changing system may have
		t.Errorf("%d below 30", got)
	}
	if !tab.Has(ID{10, 5}) || tab.Has(ID{10, 6}) || tab.Has(ID{}) {
		t.Error("has")
	}
}
func TestParseProcArgs(t *testing.T) {
	make := func(n uint32, s string) []byte { return append(binary.NativeEndian.AppendUint32(nil, n), s...) }
	got, err := parseProcArgs(make(3, "/bin/sh\x00\x00\x00\x00sh\x00-c\x00echo a b\x00SECRET=1\x00"))
	if err != nil || !slices.Equal(got, []string{"sh", "-c", "echo a b"}) {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range [][]byte{nil, {1, 0}, make(1, "/bin/sh"), make(2, "/bin/sh\x00sh\x00"), make(0xffffffff, "x\x00y\x00")} {
		if got, err := parseProcArgs(bad); err == nil {
			t.Errorf("%q gives %q", bad, got)
		}
	}
}

func FuzzProcArgs(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00/bin/sh\x00\x00sh\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		args, err := parseProcArgs(b)
		if err == nil && len(b) < len(args) {
			t.Errorf("%d arguments in %d bytes", len(args), len(b))
		}
	})
}

func TestCutArgv(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		argv := rapid.SliceOfN(rapid.StringN(0, 300, -1), 0, 100).Draw(t, "argv")
		kept, all := CutArgs(argv), 0
		for _, a := range argv {
			all += len(a) + 1
		}
		n := 0
		for i, a := range kept {
			if !strings.HasPrefix(argv[i], a) || a != argv[i] && i != len(kept)-1 {
				t.Fatalf("argument %d is %q, was %q", i, a, argv[i])
			}
			n += len(a)
		}
		if n > MaxBytes || len(kept) > MaxBytes+1 {
			t.Fatalf("%d bytes in %d arguments", n, len(kept))
		}
		if all <= MaxBytes && !reflect.DeepEqual(kept, argv) {
			t.Fatal("cut without need")
		}
	})
}
