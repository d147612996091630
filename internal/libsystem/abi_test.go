package libsystem

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestVariableArguments checks how this version of Go calls C on Apple's arm64. With six
// arguments the fourth must be on the stack, too, where sandbox_check expects it, and with
// three the last, for fcntl. Otherwise every answer would be -1.
func TestVariableArguments(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("no go command: %v", err)
	}
	b, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "src", "runtime", "sys_darwin_arm64.s"))
	if err != nil {
		t.Skipf("the Go runtime's sources are not installed: %v", err)
	}
	for what, code := range map[string]string{
		"fourth of six": `CMP\s+\$6, R12;?\s+BNE\s+2\(PC\);?\s+MOVD\s+R3, \(RSP\)`,
		"last of three": `CMP\s+\$3, R12;?\s+BNE\s+2\(PC\);?\s+MOVD\s+R2, \(RSP\)`,
	} {
		if !regexp.MustCompile(code).Match(b) {
			t.Errorf("runtime/sys_darwin_arm64.s does not put the %s arguments on the stack any more", what)
		}
	}
}
