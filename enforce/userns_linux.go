package enforce

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/internal/mounts"
	"github.com/zsbx/zsbx/internal/files"
)

// refusesUserNS says why an ordinary user gets no user namespace with a say over
// mounts, as far as that is certain without making one, and what the machine's
// owner would type to change it. It costs some microseconds, and saves each
// start on such a machine a process that is refused (AppArmor also writes a line
// to the system's log for each).
func (a *asker) refusesUserNS() (why, hint string) {
	// The kernel refuses the second flag, whoever asks: EINVAL. Another
	// answer is that of Debian's kernels, where only root may have user
	// namespaces, or of a seccomp filter, zsbx's own around this zsbx among
	// them.
	const invalid = 1
	_, errno := a.ask("unshare(2)", unix.SYS_UNSHARE, unix.CLONE_NEWUSER|invalid)
	return userNSRefusal(errno, a.read)
}

// userNSRefusal is what the answer to an unshare(2) that is wrong in any case
// means, on a machine whose procfs is read by read.
func userNSRefusal(errno unix.Errno, read func(file string) string) (why, hint string) {
	switch {
	case errno == unix.EPERM && read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return "only root may make user namespaces (sysctl kernel.unprivileged_userns_clone)", "sudo sysctl kernel.unprivileged_userns_clone=1"
	case errno != unix.EINVAL && errno != 0:
		return "the seccomp filter that zsbx itself runs under refuses user namespaces: " + errno.Error(), ""
	case read("/proc/sys/user/max_user_namespaces") == "0":
		return "user namespaces are switched off (sysctl user.max_user_namespaces)", "sudo sysctl user.max_user_namespaces=10000"
	case apparmorRestricts(read) && read("/proc/self/attr/current") == "unconfined":
		return "AppArmor restricts user namespaces to programs with a profile (sysctl kernel.apparmor_restrict_unprivileged_userns)", apparmorHint
	}
	return "", ""
}

const apparmorHint = "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"

// apparmorRestricts reports whether programs without a profile that allows it
// get user namespaces without capabilities, or none.
func apparmorRestricts(read func(file string) string) bool {
	return read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1"
}

// lateHint is what to type when it was the start that was refused.
func lateHint(errno unix.Errno) string {
	if (errno == unix.EPERM || errno == unix.EACCES) && apparmorRestricts(readSmall) {
		return apparmorHint
	}
	return ""
}

// readSmall is the first line of a small file of procfs, "" when it can't be read.
func readSmall(file string) string { return (&asker{}).read(file) }

// read is readSmall, which notes a shortage.
func (a *asker) read(file string) string {
	text, err := files.ReadInto(file, make([]byte, 64))
	a.note(file, err)
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// ProbeNamespaces finds out by doing whether a private mount namespace can be
// had, and sets MountNS and MountReason accordingly: it makes one in a process that then
// executes what can't be executed. That takes about as long as starting a command.
func ProbeNamespaces(caps *Caps) {
	if !caps.MountNS || caps.Err != nil {
		return
	}
	p := &Plan{Caps: *caps, Mounts: &mounts.Plan{UserNS: !caps.Privileged, IPC: caps.IPCReason == "", Writable: []string{}}}
	c := &fork.Command{Path: "/", Args: []string{"/"}, Dir: "/"}
	c.Steps = p.Mounts.Steps(nil, c.Memory(), os.Geteuid(), os.Getegid(), -1, nil)
	_, err := fork.Start(c)
	if se, ok := errors.AsType[*fork.StepError](err); ok && se.Stage == fork.StageExec {
		return
	}
	without, refused := p.Refused(err)
	switch {
	case refused:
		*caps = without
		ProbeNamespaces(caps)
	case fork.ShortageOf(err) != nil:
		caps.Err = fmt.Errorf("trying a mount namespace: %w", err)
	default:
		caps.MountNS, caps.MountReason = false, "a process to try it in could not be started"
	}
}
