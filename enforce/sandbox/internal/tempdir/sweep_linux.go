package tempdir

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
)

// mentioned reads the environments that the user's processes were started with,
// and reports of a directory whether it is in one: a session whose record lies
// in another place may use it.
func mentioned() func(dir string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	var all [][]byte
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte("/zsbx-")) {
			all = append(all, b)
		}
	}
	return func(dir string) bool {
		return slices.ContainsFunc(all, func(b []byte) bool { return bytes.Contains(b, []byte(dir)) })
	}
}
