package track

import (
	"encoding/binary"
	"slices"
	"testing"
)

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
