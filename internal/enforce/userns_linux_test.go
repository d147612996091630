package enforce

import (
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/fork"
)

// TestUserNSRefusal: each kind of machine that refuses user namespaces gets its own reason.
// Debian's kernels check their sysctl before the flags, so their EPERM does not come from a
// filter (seen on 6.1).
func TestUserNSRefusal(t *testing.T) {
	const (
		clone    = "/proc/sys/kernel/unprivileged_userns_clone"
		most     = "/proc/sys/user/max_user_namespaces"
		apparmor = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
		label    = "/proc/self/attr/current"
	)
	tests := []struct {
		name  string
		errno unix.Errno
		files map[string]string
		why   string
		hint  string
	}{
		{"allowed", unix.EINVAL, map[string]string{most: "3845"}, "", ""},
		{"allowed, Debian", unix.EINVAL, map[string]string{clone: "1", most: "3845", label: "unconfined"}, "", ""},
		{"procfs is missing", unix.EINVAL, nil, "", ""},
		{"filter", unix.EPERM, map[string]string{most: "3845"}, "seccomp filter", ""},
		{"filter, Debian", unix.EPERM, map[string]string{clone: "1", most: "3845"}, "seccomp filter", ""},
		{"filter with another answer", unix.ENOSYS, map[string]string{clone: "0"}, "seccomp filter", ""},
		{"Debian's sysctl", unix.EPERM, map[string]string{clone: "0", most: "3845"}, "only root", "sudo sysctl kernel.unprivileged_userns_clone=1"},
		{"both sysctls", unix.EPERM, map[string]string{clone: "0", most: "0"}, "only root", "sudo sysctl kernel.unprivileged_userns_clone=1"},
		{"none left", unix.EINVAL, map[string]string{clone: "1", most: "0"}, "switched off", "sudo sysctl user.max_user_namespaces=10000"},
		{"AppArmor", unix.EINVAL, map[string]string{most: "3845", apparmor: "1", label: "unconfined"}, "AppArmor", apparmorHint(ownFile())},
		{"AppArmor, with a profile", unix.EINVAL, map[string]string{most: "3845", apparmor: "1", label: "zsbx (unconfined)"}, "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			why, hint, _ := userNSRefusal(test.errno, func(file string) string { return test.files[file] })
			if (why == "") != (test.why == "") || !strings.Contains(why, test.why) || hint != test.hint {
				t.Errorf("%q, %q, want %q, %q", why, hint, test.why, test.hint)
			}
		})
	}
}

// TestAppArmorHint: the profile comes first, and is one for a program with any name.
func TestAppArmorHint(t *testing.T) {
	hint := apparmorHint("/opt/a b/it's zsbx")
	load, every, ok := strings.Cut(hint, " # ")
	if !ok || !strings.HasSuffix(every, "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0") {
		t.Errorf("the way for every program is not last: %q", hint)
	}
	if strings.Contains(load, "/etc/apparmor.d/zsbx ") || !strings.HasSuffix(load, "/etc/apparmor.d/zsbx-local") {
		t.Errorf("the packages' profile would be replaced: %q", load)
	}
	print, _, _ := strings.Cut(load, " | ")
	out, err := exec.Command("sh", "-c", print).Output()
	const want = "abi <abi/4.0>,\nprofile zsbx-local \"/opt/a b/it's zsbx\" flags=(unconfined) { userns, }\n"
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestAppArmorAllows: where user namespaces can be restricted, what allows them is known.
func TestAppArmorAllows(t *testing.T) {
	for _, c := range []struct{ sysctl, label, want string }{
		{"", "unconfined", ""},
		{"0", "unconfined", "restricts no program"},
		{"1", "unconfined", ""},
		{"1", "", ""}, // it can't be read
		{"1", "zsbx (unconfined)", "by the profile zsbx (unconfined)"},
	} {
		_, _, got := apparmor(func(file string) string {
			return map[string]string{apparmorSysctl: c.sysctl, apparmorLabel: c.label}[file]
		})
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%q, %q: %q", c.sysctl, c.label, got)
		}
	}
}

// TestAppArmorProfile: where zsbx runs under a profile of AppArmor that refuses a namespace, the reason names it, and no
// profile for zsbx is proposed, which would not hold under it. The controls: no profile, and one that restricts nothing.
func TestAppArmorProfile(t *testing.T) {
	for _, c := range []struct {
		label, profile string
		hint           bool
	}{
		{"", "", true},
		{"unconfined", "", true},
		{"zsbx (unconfined)", "", true},
		{"tried (complain)", "", true},
		{"my shell (enforce)", "my shell", false},
		{"a//&b (kill)", "a//&b", false},
	} {
		if got := profileOf(c.label); got != c.profile {
			t.Errorf("%q: the profile %q", c.label, got)
		}
		hint := lateHint(unix.EACCES, func(file string) string {
			return map[string]string{apparmorSysctl: "1", apparmorConfined: c.label}[file]
		})
		if (hint != "") != c.hint {
			t.Errorf("%q: the hint %q", c.label, hint)
		}
		why := noNamespace(&fork.StepError{Tag: mounts.TagUnshare, Name: "unshare(2)", Errno: unix.EACCES}, c.profile)
		named := strings.Contains(why, "under AppArmor's profile "+c.profile+",") && strings.Contains(why, `"userns,"`)
		if named != (c.profile != "") || !strings.Contains(why, "seccomp filter") {
			t.Errorf("%q: %s", c.label, why)
		}
	}
}
