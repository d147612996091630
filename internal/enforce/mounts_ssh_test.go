package enforce

import (
	"testing"

	"github.com/zsbx/zsbx/internal/enforce/mounts"
)

func TestSSHCopies(t *testing.T) {
	h := treeHost(map[string]string{
		"/etc/ssh/ssh_config.d/50-x.conf": "Host a\n  include /etc/crypto\n\"Include\"=x\nSendEnv X\n",
		"/etc/ssh/ssh_config.d/60-y.conf": "->/usr/lib/y",
		"/etc/ssh/ssh_config.d/README":    "no\n",
		"/usr/lib/y":                      "Include /etc/missing\nInclude \"quoted\"\nUser u\n",
	})
	got := mounts.SSHCopies(asked(h, "", []string{"/etc"}), h)
	if len(got) != 2 || got[0].Text != "Host a\nSendEnv X\n" || got[1].Text != "User u\n" {
		t.Errorf("got %q", got)
	}
	if got := mounts.SSHCopies(asked(h, "", []string{"/usr"}), h); got != nil {
		t.Errorf("not allowed: got %q", got)
	}
}
