package program

import (
	"bytes"
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestLoader compares with debug/elf what programs of this machine name, and those of other
// machines in Go's own tests.
func TestLoader(t *testing.T) {
	files, _ := filepath.Glob("/bin/*")
	others, _ := filepath.Glob(filepath.Join(os.Getenv("GOROOT"), "src/debug/elf/testdata/*"))
	found := map[elf.Class]int{}
	for _, name := range append(files[:min(len(files), 100)], others...) {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		defer f.Close()
		e, err := elf.NewFile(f)
		if err != nil || e.ByteOrder.String() != "LittleEndian" {
			continue
		}
		want := ""
		for _, p := range e.Progs {
			if p.Type == elf.PT_INTERP {
				b, _ := io.ReadAll(p.Open())
				want = string(bytes.TrimRight(b, "\x00"))
			}
		}
		if got, loader := Interpreter(f); got != want || loader != (want != "") {
			t.Errorf("%s: %q, %v, want %q", name, got, loader, want)
		} else if loader {
			found[e.Class]++
		}
	}
	if len(others) > 0 && (found[elf.ELFCLASS32] == 0 || found[elf.ELFCLASS64] == 0) {
		t.Errorf("programs with a loader: %v", found)
	}
}

// TestDamaged reads programs that end early, or claim to be longer than they are.
func TestDamaged(t *testing.T) {
	whole := append([]byte(elfMagic+"\x02\x01"), bytes.Repeat([]byte{0xff}, 300)...)
	for n := range whole {
		if got, loader := Interpreter(bytes.NewReader(whole[:n])); got != "" || loader {
			t.Errorf("%d bytes: %q", n, got)
		}
	}
	if got, _ := Interpreter(bytes.NewReader([]byte("#! /bin/sh -e\n"))); got != "/bin/sh" {
		t.Errorf("script: %q", got)
	}
}
