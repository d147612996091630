package seatbelt_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce/seatbelt"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
)

// TestTinyScheme lets TinyScheme, the ancestor of macOS' interpreter, read profiles. It must
// read the same strings in the same order as the reader of these tests, and reach the end.
func TestTinyScheme(t *testing.T) {
	bin, err := exec.LookPath("tinyscheme") // the second reader of profiles
	if err != nil {
		testkit.Lacks(t, testkit.TinyScheme, err)
	}
	var paths []resolve.Path
	for _, n := range nasty() {
		p := flag("/Users/u/"+n, allAccess, fs.ModeDir)
		if _, err := seatbelt.Profile(macPolicy(p), seatbelt.Options{}); err == nil {
			paths = append(paths, p)
		}
	}
	r := macPolicy(paths...)
	r.Deny = []resolve.DenyPath{denial("/Users/u/**/.env"), denial("/Users/u/proj/k[0-9]/?.pem"), denial(`/Users/u/a "b" \`)}
	full, err := seatbelt.Profile(r, seatbelt.Options{Session: testSession, Terminal: "/dev/ttys001", Unmade: []string{`/Users/ü/a "b" \.git/hooks`}})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{full, trackProfile(t, `/Users/a "b" \`)} {
		want, err := Strings(text)
		if err != nil {
			t.Fatal(err)
		}
		got := tinyStrings(t, bin, text)
		if !slices.Equal(got, append(want, "END")) {
			for i := range want {
				if i >= len(got) || got[i] != want[i] {
					t.Fatalf("string %d: tinyscheme reads %q, this test %q", i, got[min(i, len(got)-1)], want[i])
				}
			}
			t.Fatalf("tinyscheme read %d strings and did not come to the end: %q", len(got), got[max(0, len(got)-3):])
		}
	}
}

// tinyStrings runs a profile after definitions of its words that print every string they get.
// Debian's build crashes with several files, so it is one file.
func tinyStrings(t *testing.T, bin, text string) []string {
	t.Helper()
	var b strings.Builder
	for _, op := range append(slices.Sorted(maps.Keys(operations)), "self", "same-sandbox", "ip", "tcp", "AF_UNIX", "DIRECTORY", "TIOCSTI") {
		fmt.Fprintf(&b, "(define %s '%s)\n", op, op)
	}
	b.WriteString("(define (version n) n)\n(define (allow . x) 'done)\n(define (deny . x) 'done)\n")
	b.WriteString(`(define (show x) (if (string? x) (begin (display x) (newline))))` + "\n")
	for _, f := range []string{
		"literal", "subpath", "regex", "extension", "global-name", "xpc-service-name-prefix", "fcntl-command", "ioctl-command", "ipc-posix-name", "ipc-posix-name-regex", "sysctl-name",
		"target", "remote", "local", "socket-domain", "require-all", "vnode-type", "with",
	} {
		fmt.Fprintf(&b, "(define (%s . x) (for-each show x) 'filter)\n", f)
	}
	b.WriteString(text)
	b.WriteString("(display \"END\")\n(newline)\n")
	name := filepath.Join(t.TempDir(), "profile.scm")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(bin, name).CombinedOutput()
	if err != nil {
		t.Fatalf("tinyscheme: %v\n%s", err, out)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}
