package enforce

import "testing"

// TestKeeps: a command in a user namespace keeps no capability, and is not said to.
func TestKeeps(t *testing.T) {
	const chown, netRaw = 1 << 0, 1 << 13
	h := treeHost(map[string]string{"/w/.env": ""})
	for _, c := range []struct {
		privileged bool
		want       string
	}{{true, "chown"}, {false, "none"}} {
		caps := canMount()
		caps.Privileged, caps.Capabilities = c.privileged, chown|netRaw
		p := NewPlan(asked(h, "", []string{"/w"}), caps, h, Options{})
		if got := p.keptText(); got != c.want {
			t.Errorf("privileged %v: %q, want %q", c.privileged, got, c.want)
		}
	}
}
