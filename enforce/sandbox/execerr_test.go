package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/policy"
)

// TestExecParts reads chains of interpreters and stops at loops.
func TestExecParts(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return file
	}
	sh := write("sh", "plain")
	one := write("one", "#! "+sh+" -x\nbody")
	two := write("two", "#!"+one+"\n")
	loop := write("loop", "#!"+filepath.Join(dir, "loop")+"\n")
	bare := write("bare", "#!\n")
	long := write("long", "#!/"+strings.Repeat("a", 500))
	for file, want := range map[string][]string{
		sh: {sh}, one: {one, sh}, two: {two, one, sh}, bare: {bare},
		long:                     {long, "/" + strings.Repeat("a", 256-3)},
		loop:                     {loop, loop, loop, loop, loop, loop},
		filepath.Join(dir, "no"): {filepath.Join(dir, "no")},
	} {
		var got []string
		for _, p := range execParts(file) {
			got = append(got, p.file)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", filepath.Base(file), got, want)
		}
	}
	host, err := policy.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	p := &policy.Policy{}
	p.FS.Rules = []policy.Rule{{Path: one, Access: policy.Read | policy.Exec}}
	r, err := p.Resolve(host)
	if err != nil {
		t.Fatal(err)
	}
	f := explainExec(&enforce.Plan{Policy: r}, one, syscall.EACCES)
	if f.Code != CodeCannotRun || !strings.Contains(f.Error(), "its interpreter "+sh) || f.Hint != "--rox "+dir {
		t.Errorf("%v, hint %q, code %s", f, f.Hint, f.Code)
	}
}
