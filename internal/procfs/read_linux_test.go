package procfs

import (
	"bytes"
	"os"
	"testing"

	"github.com/zsbx/zsbx/internal/files"
)

// TestRead: a file is read whole, however little room there is.
func TestRead(t *testing.T) {
	want, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range []int{1, 64, len(want), 2 * len(want)} {
		if got, err := files.ReadInto("/proc/self/mountinfo", make([]byte, room)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("into %d bytes: %d of %d, %v", room, len(got), len(want), err)
		}
	}
	if s, err := Look(os.Getpid()); err != nil || s.Pid != os.Getpid() || s.Parent != os.Getppid() {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := Look(1 << 30); !os.IsNotExist(err) {
		t.Error(err)
	}
}
