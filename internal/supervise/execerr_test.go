package supervise

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// TestExecParts reads chains of interpreters, and stops at loops and at a FIFO. A script
// that names none has the shell's parts.
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
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o755); err != nil {
		t.Fatal(err)
	}
	waits := write("waits", "#!"+pipe+"\n")
	parts := func(file string) (names []string) {
		for _, p := range execParts(file) {
			names = append(names, p.file)
		}
		return names
	}
	for file, want := range map[string][]string{
		sh: append([]string{sh}, parts(binSh)...), bare: append([]string{bare}, parts(binSh)...),
		one: {one, sh}, two: {two, one, sh}, waits: {waits, pipe},
		long:                     {long, "/" + strings.Repeat("a", 256-3)},
		loop:                     {loop, loop, loop, loop, loop, loop},
		filepath.Join(dir, "no"): {filepath.Join(dir, "no")},
	} {
		if got := parts(file); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", filepath.Base(file), got, want)
		}
	}
	_, err := explainExec(planFor(t, one), one, syscall.EACCES)
	if f, _ := errors.AsType[*Error](err); f.Code != CodeCannotRun || !strings.Contains(f.Error(), "its interpreter "+sh) || f.Hint != "--rox "+dir {
		t.Errorf("%v, hint %q, code %s", f, f.Hint, f.Code)
	}
}

// planFor returns a plan that lets one file be read and executed.
func planFor(t *testing.T, file string) *enforce.Plan {
	h, err := host.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	p := &policy.Policy{}
	p.FS.Rules = []policy.Rule{{Path: file, Access: policy.Read | policy.Exec}}
	r, err := resolve.Policy(p, h)
	if err != nil {
		t.Fatal(err)
	}
	return &enforce.Plan{Policy: r}
}

// TestExplainOvertaken: that another program removed something is a guess. It comes after what the
// kernel said.
func TestExplainOvertaken(t *testing.T) {
	se := &fork.StepError{Stage: fork.StageBefore, Tag: mounts.TagCover, Name: "move_mount(2) onto /x", Errno: syscall.EINVAL}
	err := (&Command{}).explainStart(se, "/bin/sh")
	if got := err.Error(); !strings.HasPrefix(got, "starting /bin/sh: "+se.Error()) || !strings.Contains(got, "another command may be ") {
		t.Error(got)
	}
}

// TestExplainSetuid: on macOS no sandbox lets a set-user-ID program be executed, and check says so
// beforehand.
func TestExplainSetuid(t *testing.T) {
	file := filepath.Join(t.TempDir(), "prog")
	if err := os.WriteFile(file, []byte("\x7fELF"), 0o755); err != nil {
		t.Fatal(err)
	}
	plan := planFor(t, file)
	plan.Caps.OS = "macos"
	if _, e := explainExec(plan, file, 0); e != nil {
		t.Errorf("without: %v", e)
	}
	if err := os.Chmod(file, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	for _, errno := range []syscall.Errno{0, syscall.EPERM} {
		if _, e := explainExec(plan, file, errno); e == nil || !strings.Contains(e.Error(), "set-user-ID") {
			t.Errorf("with: %v", e)
		}
	}
	plan.Caps.OS = "linux"
	if runtime.GOOS != "linux" {
		return
	}
	if _, e := explainExec(plan, file, 0); e != nil {
		t.Errorf("on Linux: %v", e)
	}
}

// TestExplainCapabilities: if the kernel refuses a program because its file has capabilities, the
// error says so, and it does so for no other program.
func TestExplainCapabilities(t *testing.T) {
	file := filepath.Join(t.TempDir(), "prog")
	if err := os.WriteFile(file, []byte("\x7fELF"), 0o755); err != nil {
		t.Fatal(err)
	}
	plan := planFor(t, file)
	if _, e := explainExec(plan, file, syscall.EPERM); strings.Contains(e.Error(), "getcap") {
		t.Errorf("without: %v", e)
	}
	capability := []byte{3: 2, 5: 1 << 5, 19: 0} // struct vfs_cap_data: CAP_NET_RAW is permitted
	if runtime.GOOS != "linux" || unix.Setxattr(file, "security.capability", capability, 0) != nil {
		t.Skip("no file capabilities here")
	}
	if _, e := explainExec(plan, file, syscall.EPERM); !strings.Contains(e.Error(), "getcap") {
		t.Errorf("with: %v", e)
	}
	// check says so beforehand, if the program would not start
	plan.DropCapabilities = 1 << 13
	if _, e := explainExec(plan, file, 0); e != nil {
		t.Errorf("of one that starts without: %v", e)
	}
	capability[0] = 1 // effective
	if err := unix.Setxattr(file, "security.capability", capability, 0); err != nil {
		t.Fatal(err)
	}
	if _, e := explainExec(plan, file, 0); e == nil || !strings.Contains(e.Error(), "getcap") {
		t.Errorf("of one that does not: %v", e)
	}
	plan.DropCapabilities = 1 << 7
	if _, e := explainExec(plan, file, 0); e != nil {
		t.Error("it has what it wants")
	}
}
