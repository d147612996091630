package enforce

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestCapabilities compares the numbers of capabilities with what others say.
func TestCapabilities(t *testing.T) {
	if capKill != unix.CAP_KILL {
		t.Errorf("CAP_KILL is %d", capKill)
	}
	for name, bit := range map[string]uint{"chown": unix.CAP_CHOWN, "dac_override": unix.CAP_DAC_OVERRIDE,
		"fowner": unix.CAP_FOWNER, "fsetid": unix.CAP_FSETID, "setgid": unix.CAP_SETGID, "setuid": unix.CAP_SETUID,
		"net_bind_service": unix.CAP_NET_BIND_SERVICE, "setfcap": unix.CAP_SETFCAP} {
		found := false
		for _, c := range buildCapabilities() {
			found = found || c.name == name && c.bit == bit
		}
		if !found {
			t.Errorf("capability %s is not %d", name, bit)
		}
	}
}
