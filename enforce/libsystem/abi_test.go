package libsystem

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFourthArgument looks at how this Go calls C on Apple's arm64: with six
// arguments, the fourth must be on the stack, too, where sandbox_check looks for
// it. A Go that no longer does that would make every answer -1.
func TestFourthArgument(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("no go command: %v", err)
	}
	b, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "src", "runtime", "sys_darwin_arm64.s"))
	if err != nil {
		t.Skipf("the Go runtime's sources are not installed: %v", err)
	}
	if !regexp.MustCompile(`CMP\s+\$6, R12;?\s+BNE\s+2\(PC\);?\s+MOVD\s+R3, \(RSP\)`).Match(b) {
		t.Error("runtime/sys_darwin_arm64.s does not put the fourth of six arguments on the stack any more")
	}
}
