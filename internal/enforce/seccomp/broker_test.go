package seccomp

import (
	"strings"
	"testing"
)

func TestYamaRefuses(t *testing.T) {
	const able = 1 << CapSysPtrace
	for _, tt := range []struct {
		scope        byte
		capabilities uint64
		want         string
	}{
		{'0', 0, ""}, {'1', 0, ""}, {'2', able, ""}, {'0', able, ""}, {'1', able, ""},
		{'2', 0, "lets only CAP_SYS_PTRACE fetch"}, {'2', able - 1, "ptrace_scope is 2"},
		{'3', 0, "lets nobody fetch"}, {'3', able, "ptrace_scope is 3"},
	} {
		if got := YamaRefuses(tt.scope, tt.capabilities); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("scope %c, capabilities %x: %q, want %q", tt.scope, tt.capabilities, got, tt.want)
		}
	}
}
