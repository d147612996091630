package testkit

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

// Update is the flag -update, which writes a package's golden files anew.
var Update = flag.Bool("update", false, "write the golden files of this package anew")

// Golden compares text with a file of the package's testdata.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *Update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what it was; go test -update writes it anew\ngot:\n%s", file, got)
	}
}
