package enforce

import (
	"strings"
	"testing"
)

func TestYamaRefuses(t *testing.T) {
	const able = 1 << capSysPtrace
	for _, tt := range []struct {
		scope        byte
		capabilities uint64
		want         string
	}{
		{'0', 0, ""}, {'1', 0, ""}, {'2', able, ""}, {'0', able, ""}, {'1', able, ""},
		{'2', 0, "lets only CAP_SYS_PTRACE fetch"}, {'2', able - 1, "ptrace_scope is 2"},
		{'3', 0, "lets nobody fetch"}, {'3', able, "ptrace_scope is 3"},
	} {
		if got := yamaRefuses(tt.scope, tt.capabilities); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("scope %c, capabilities %x: %q, want %q", tt.scope, tt.capabilities, got, tt.want)
		}
		apart := yamaRefusesApart(tt.scope, tt.capabilities)
		if only := tt.scope == '1' && tt.capabilities == 0; only != strings.Contains(apart, "only ancestors") || !only && apart != yamaRefuses(tt.scope, tt.capabilities) {
			t.Errorf("scope %c, capabilities %x, apart: %q", tt.scope, tt.capabilities, apart)
		}
	}
}
