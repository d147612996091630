package cmd

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the test binary stand in for zsbx in scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"zsbx": func() { os.Exit(Main(os.Args[1:])) },
	})
}
