package attack_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/testkit"
)

// suidPlace returns a place where set-user-ID programs have an effect. They have none in a /tmp
// that systemd mounts with nosuid.
func suidPlace(t *testing.T) *place {
	t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(os.TempDir(), &fs); err == nil && fs.Flags&unix.ST_NOSUID != 0 {
		t.Setenv("TMPDIR", "/var/tmp")
	}
	return newPlace(t)
}

// privilegedPlace has programs in the writable tree that would give their users more rights:
// set-user-ID root, and with a file capability.
func privilegedPlace(t *testing.T) *place {
	p := suidPlace(t)
	for _, script := range []string{
		`cp "$(command -v id)" suid && chown 0:0 suid && chmod 4755 suid`,
		`cp "$(command -v cat)" capable && chmod 755 capable && setcap cap_sys_admin,cap_sys_ptrace=ep capable`,
	} {
		status, out := p.sh(t, nil, script)
		testkit.NeedShell(t, status, out)
		if status != 0 {
			t.Fatalf("%s: exit status %d: %s", script, status, out)
		}
	}
	return p
}

// TestPrivilegedPrograms: set-user-ID programs and file capabilities give
// nothing inside (no_new_privs), neither to root nor to a user that root
// becomes. The bit of CAP_SYS_ADMIN is the 22nd of CapEff.
func TestPrivilegedPrograms(t *testing.T) {
	needLandlock(t, 1)
	if os.Geteuid() != 0 {
		t.Skip("making such programs needs root")
	}
	const nobody = `setpriv --reuid 65534 --regid 65534 --clear-groups `
	for _, a := range []breach{
		{"a user runs a set-user-ID program", `test "$(` + nobody + `./suid -u)" = 0`},
		{"a user runs a program with capabilities", nobody + `./capable /proc/self/status | grep -q '^CapEff:.*[2367abef].....$'`},
		{"root runs a program with capabilities", `./capable /proc/self/status | grep -q '^CapEff:.*[2367abef].....$'`},
		{"a user runs one that root makes inside", `cp suid new && chmod 4755 new && test "$(` + nobody + `./new -u)" = 0`},
	} {
		t.Run(a.name, func(t *testing.T) {
			p := privilegedPlace(t)
			if status, out := p.sh(t, nil, a.script); status != 0 {
				t.Fatalf("control: exit status %d: %s", status, out)
			}
			for name, plan := range map[string]bool{"with mounts": true, "without": false} {
				pl := p.plan()
				if plan {
					pl = p.mountPlan()
				}
				if status, out := p.sh(t, pl, a.script); status == 0 {
					t.Errorf("%s: it worked: %s", name, out)
				}
				if status, out := p.sh(t, pl, nobody+`./suid -u && ./suid -u`); status != 0 {
					t.Errorf("%s: the programs themselves: exit status %d: %s", name, status, out)
				}
			}
		})
	}
}

// TestKnownLimitPrivilegedFiles: root may leave such a program behind, as package managers
// must. A user who runs it later, outside, is root.
func TestKnownLimitPrivilegedFiles(t *testing.T) {
	needLandlock(t, 1)
	if os.Geteuid() != 0 {
		t.Skip("making such programs needs root")
	}
	p := suidPlace(t)
	if status, out := p.sh(t, p.mountPlan(), `cp "$(command -v id)" left && chmod 4755 left`); status != 0 {
		t.Fatalf("the document has to be changed: %s", out)
	}
	if status, out := p.sh(t, nil, `test "$(setpriv --reuid 65534 --regid 65534 --clear-groups ./left -u)" = 0`); status != 0 {
		t.Errorf("the document has to be changed: %s", out)
	}
}
