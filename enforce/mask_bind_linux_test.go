package enforce_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/testkit"
)

// TestDenyGlobInBind: a tree in which a part of itself is mounted a second time
// has each match twice.
func TestDenyGlobInBind(t *testing.T) {
	needMounts(t)
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	for _, bind := range []bool{false, true} {
		p := newPlace(t)
		write(t, p.in+"/s/.env", "TOKEN\n")
		write(t, p.in+"/s/dir.d/x", "TOKEN\n")
		if err := os.Mkdir(p.in+"/b", 0o755); err != nil {
			t.Fatal(err)
		}
		if bind {
			if err := unix.Mount(p.in+"/s", p.in+"/b", "", unix.MS_BIND, ""); err != nil {
				testkit.Lacks(t, testkit.UserNS, "no bind mount: ", err)
			}
			t.Cleanup(func() { unix.Unmount(p.in+"/b", unix.MNT_DETACH) })
		}
		p.deny(p.in + "/**/.env")
		p.deny(p.in + "/**/*.d")
		for _, file := range []string{"s/.env", "b/.env", "s/dir.d/x", "b/dir.d/x"} {
			if file[0] == 'b' && !bind {
				continue
			}
			if status, out := p.sh(t, nil, "cat "+file); status != 0 {
				t.Fatalf("control: %s: %s", file, out)
			}
			if status, out := p.sh(t, p.mountPlan(), "cat "+file); status == 0 {
				t.Errorf("bind %v: %s was read: %s", bind, file, out)
			}
		}
		if status, out := p.sh(t, p.mountPlan(), "echo x >b/new && cat s/../file"); status != 0 {
			t.Errorf("bind %v: beside it: %s", bind, out)
		}
	}
}
