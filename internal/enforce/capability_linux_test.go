package enforce

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestCapabilities compares the numbers of capabilities with those of others.
func TestCapabilities(t *testing.T) {
	for name, bit := range map[string]uint{"chown": unix.CAP_CHOWN, "dac_override": unix.CAP_DAC_OVERRIDE,
		"fowner": unix.CAP_FOWNER, "fsetid": unix.CAP_FSETID, "kill": unix.CAP_KILL, "setgid": unix.CAP_SETGID, "setuid": unix.CAP_SETUID,
		"net_bind_service": unix.CAP_NET_BIND_SERVICE, "setfcap": unix.CAP_SETFCAP} {
		if got := capabilityNames()[bit]; got != name {
			t.Errorf("capability %d is %q, want %s", bit, got, name)
		}
	}
	if without := keptCapabilities(false); without != keptCapabilities(true)&^(1<<unix.CAP_KILL) || without&(1<<unix.CAP_SYS_ADMIN|1<<unix.CAP_DAC_READ_SEARCH) != 0 {
		t.Errorf("%b is kept", without)
	}
}
