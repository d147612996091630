package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zsbx/zsbx/internal/testkit"
)

// TestDecodeAllErrors checks that all errors are found at once, and that too many are cut.
func TestDecodeAllErrors(t *testing.T) {
	_, err := Decode("p.toml", []byte("a = 1\n[net]\nconnect_tcp = [0, 1, 70000]\nallow = 1\n[fs]\nro = ['', 2]\n[x]\n"))
	var es Errors
	if !errors.As(err, &es) || len(es) != 7 {
		t.Errorf("got %d errors: %v", len(es), err)
	}
	for i := 1; i < len(es); i++ {
		if a, b := es[i-1].Origin, es[i].Origin; a.Line > b.Line || a.Line == b.Line && a.Column >= b.Column {
			t.Errorf("%v stands before %v", a, b)
		}
	}
	_, err = Decode("p.toml", []byte("presets = ["+strings.Repeat("1, ", 5000)+"]"))
	if !errors.As(err, &es) || len(es) != maxErrors+1 || es[maxErrors].Code != CodeMore {
		t.Errorf("got %d errors, the last one %v", len(es), es[len(es)-1])
	}
}

func TestDecodeLimits(t *testing.T) {
	file := func(n int) string {
		var b strings.Builder
		b.WriteString("fs.ro = [")
		for i := range n {
			fmt.Fprintf(&b, "'/data/%d',", i)
		}
		b.WriteString("]\n")
		return b.String()
	}
	start := time.Now()
	p, err := Decode("p.toml", []byte(file(MaxRules)))
	if err != nil || len(p.FS.Rules) != MaxRules {
		t.Errorf("%d rules: %v", MaxRules, err)
	}
	json := `{"fs":{"ro":` + strings.NewReplacer("'", `"`, ",]", "]", "fs.ro = ", "").Replace(file(MaxRules)) + `}}`
	if _, err := Decode("p.json", []byte(json)); err != nil {
		t.Errorf("%d rules in one line of JSON: %v", MaxRules, err)
	}
	if d := time.Since(start); d > testkit.Patience/4 {
		t.Errorf("decoding took %v", d)
	}
	if _, err := Decode("p.toml", []byte(file(MaxRules+1))); err != nil {
		t.Errorf("one rule more, which Resolve refuses: %v", err)
	}
	pad := "# " + strings.Repeat("x", MaxFileSize-3) + "\n"
	if _, err := Decode("p.toml", []byte(pad)); err != nil {
		t.Errorf("%d bytes: %v", len(pad), err)
	}
	if _, err := Decode("p.toml", []byte(pad+"\n")); err == nil || !strings.Contains(err.Error(), "larger than 1048576 bytes") {
		t.Errorf("%d bytes: %v", len(pad)+1, err)
	}
	// The cost of many different keys must not grow with the square of their number.
	var b strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&b, "k%d = 1\n", i)
	}
	start = time.Now()
	if _, err := Decode("p.toml", []byte(b.String())); err == nil {
		t.Error("60,000 unknown keys are no error")
	}
	if d := time.Since(start); d > testkit.Patience/4 {
		t.Errorf("60,000 unknown keys took %v", d)
	}
}

// TestDecodeFile checks that only a regular file is read, and that nothing blocks.
func TestDecodeFile(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		if err := os.WriteFile(in(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("ok.toml", "fs.ro = ['/']")
	write("ok.json", `{"fs": {"ro": ["/"]}}`)
	write("json.toml", `{"fs": {"ro": ["/"]}}`)
	write("large.toml", "")
	if err := os.Truncate(in("large.toml"), 2<<30); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(in("fifo.toml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("loop.toml", in("loop.toml")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ file, want string }{
		{in("ok.toml"), ""},
		{in("ok.json"), ""},
		{in("json.toml"), "json.toml:1:1: "},
		{in("large.toml"), "it has 2147483648 bytes: the most is 1048576"},
		{in("fifo.toml"), "it is not a regular file"},
		{dir, "it is not a regular file"},
		{"/dev/zero", "it is not a regular file"},
		{in("missing.toml"), "reading the policy: no such file or directory"},
		{in("loop.toml"), "too many levels of symbolic links"},
	} {
		p, err := DecodeFile(tt.file)
		if (p == nil) != (err != nil) || (tt.want == "") != (err == nil) {
			t.Errorf("%s: %+v, %v", tt.file, p, err)
		} else if err != nil && (!strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), tt.file)) {
			t.Errorf("%s: %v, want %q", tt.file, err, tt.want)
		}
	}
	if _, err := DecodeFile(in("missing.toml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
	}
}
