package proc

import (
	"encoding/binary"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseStat(t *testing.T) {
	tail := " S 77 12 11 34816 12 4194560 1 0 0 0 3 1 0 0 20 0 1 0 4711 1000 2 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
	for _, name := range []string{"sh", "a b", "(", ")", ") S 1 (", "a) R 9 9 9", ""} {
		p, err := parseStat([]byte("123 (" + name + ")" + tail))
		want := Process{ID: ID{123, 4711}, Parent: 77, Group: 12, Session: 11, State: "S", Name: name}
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

func TestTableBelow(t *testing.T) {
	tab := &Table{Procs: map[int]Process{}}
	for pid, parent := range map[int]int{10: 1, 11: 10, 12: 11, 13: 10, 20: 1, 30: 31, 31: 30} {
		tab.Procs[pid] = Process{ID: ID{Pid: pid, Start: 5}, Parent: parent}
	}
	if got := len(tab.Below(10)); got != 3 {
		t.Errorf("%d below 10", got)
	}
	if got := len(tab.Below(30)); got != 1 { // a ring, as a snapshot of a changing system may have
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
		kept, wasCut := CutArgs(argv)
		n := 0
		for i, a := range kept {
			if !strings.HasPrefix(argv[i], a) || a != argv[i] && i != len(kept)-1 {
				t.Fatalf("argument %d is %q, was %q", i, a, argv[i])
			}
			n += len(a)
		}
		if n > MaxBytes || len(kept) > MaxArgs {
			t.Fatalf("%d bytes in %d arguments", n, len(kept))
		}
		if !wasCut && !reflect.DeepEqual(kept, argv) && len(argv) > 0 {
			t.Fatal("cut without saying so")
		}
	})
}
