package layer

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestSizeKept: what an apply keeps takes space, but is no file of the layer.
func TestSizeKept(t *testing.T) {
	l := makeLayer(t, t.TempDir(), "", t.TempDir())
	before, n, err := l.Size()
	if before != 0 || n != 0 || err != nil {
		t.Errorf("an empty layer: %d bytes, %d files, %v", before, n, err)
	}
	kept := filepath.Join(l.Dir, KeptPrefix+"0-0")
	if err := os.Mkdir(kept, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(kept, "7"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if bytes, n, err := l.Size(); bytes < 1<<20 || n != 0 || err != nil {
		t.Errorf("%d bytes, %d files, %v", bytes, n, err)
	}
}

// TestSizeMeanwhile: a command removes files while the layer is looked at.
func TestSizeMeanwhile(t *testing.T) {
	l := makeLayer(t, t.TempDir(), "", t.TempDir())
	upper := l.TreeDir(0) + "/upper/"
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
			for i := range 50 {
				_ = os.MkdirAll(upper+strconv.Itoa(i)+"/d", 0o755)
			}
			for i := range 50 {
				_ = os.RemoveAll(upper + strconv.Itoa(i))
			}
		}
	}()
	for running := true; running; {
		select {
		case <-ended:
			running = false
		default:
		}
		if _, _, err := l.Size(); err != nil {
			t.Error(err)
		}
	}
}
