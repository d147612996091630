package libsystem

import (
	"debug/macho"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestImports builds this package's tests for macOS without cgo, and checks what the program
// imports from the dynamic linker. It runs on every system.
func TestImports(t *testing.T) {
	if testing.Short() || os.Getenv("CI") != "" && os.Geteuid() != 0 {
		t.Skip("builds programs with a cold cache; continuous integration has done that once, as root")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		out := filepath.Join(t.TempDir(), arch)
		c := exec.Command("go", "test", "-c", "-o", out, ".")
		c.Env = append(os.Environ(), "GOOS=darwin", "GOARCH="+arch, "CGO_ENABLED=0")
		if b, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", arch, err, b)
		}
		f, err := macho.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		symbols, err := f.ImportedSymbols()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{"_sandbox_init", "_sandbox_free_error", "_sandbox_check", "_proc_listpids", "_fcntl", "_confstr"} {
			if !slices.Contains(symbols, s) {
				t.Errorf("%s: %s is not imported", arch, s)
			}
		}
		libs, err := f.ImportedLibraries()
		if err != nil || !slices.Contains(libs, "/usr/lib/libSystem.B.dylib") {
			t.Errorf("%s: libraries %v, %v", arch, libs, err)
		}
		f.Close()
	}
}
