package enforce

import (
	"strings"
	"testing"

	"github.com/zsbx/zsbx/enforce/internal/mounts"
)

func TestSSHCopies(t *testing.T) {
	h := treeHost(map[string]string{
		"/etc/ssh/ssh_config.d/50-x.conf":   "Host a\n  include /etc/crypto\nSendEnv X\n",
		"/etc/ssh/ssh_config.d/60-y.conf":   "->/usr/lib/y",
		"/etc/ssh/ssh_config.d/README":      "no\n",
		"/usr/lib/y":                        "Include /etc/missing\nInclude \"quoted\"\n",
		"/etc/crypto":                       "Ciphers c",
		"/loop/etc/ssh/ssh_config.d/README": "",
	})
	got := mounts.SshCopies(asked(h, "", []string{"/etc"}), h)
	if len(got) != 1 || len(got[0].Files) != 2 ||
		got[0].Files[0].Text != "Host a\nCiphers c\nSendEnv X\n" || got[0].Files[1].Text != "Include \"quoted\"\n" {
		t.Errorf("got %q", got)
	}
	if got := mounts.SshCopies(asked(h, "", []string{"/usr"}), h); got != nil {
		t.Errorf("not allowed: got %q", got)
	}
	h = treeHost(map[string]string{"/etc/ssh/ssh_config.d/a.conf": "Include /etc/ssh/ssh_config.d/a.conf\n"})
	for _, c := range mounts.SshCopies(asked(h, "", []string{"/etc"}), h) {
		if strings.Contains(c.Files[0].Text, "Include") {
			t.Errorf("a loop: %q", c)
		}
	}
}
