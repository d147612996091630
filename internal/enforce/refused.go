package enforce

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/fork"
)

// Refused returns this machine's capabilities without the namespace that the kernel or a
// security module refused, if that is why a command could not be started. A plan made with them
// does not use the namespace, and has the gaps. A shortage and EIO are no refusals.
func (p *Plan) Refused(err error) (Caps, bool) {
	if p == nil {
		return Caps{}, false
	}
	se, ok := errors.AsType[*fork.StepError](err)
	caps := p.Caps
	if p.Mounts == nil || !ok || se.Errno == syscall.EIO || isShortage(se) {
		return caps, false
	}
	why := noNamespace(se, profileOf(readSmall(apparmorConfined)))
	switch se.Tag {
	case tagNet:
		caps.NetReason = why
		return caps, true
	case mounts.TagOverlay:
		caps.TryReason = noOverlay(se)
		return caps, true
	}
	switch {
	case se.Tag == mounts.TagUnshare, se.Tag == mounts.TagSetup, se.Tag == mounts.TagCover && forbidden(se.Errno),
		se.Tag == mounts.TagOpen && se.Errno == syscall.ENOSYS:
		caps.MountNS = false
		caps.MountReason = why
		caps.MountHint = ""
		if p.Mounts.UserNS {
			caps.MountHint = lateHint(se.Errno, readSmall)
		}
	case se.Tag == fork.TagNamespaces, se.Tag == mounts.TagProc:
		caps.PidsReason = why
	case se.Tag == mounts.TagIPC:
		caps.IPCReason = why
	default:
		return caps, false
	}
	return caps, true
}

// Overtaken reports whether a command could not be started because a denied or protected file
// was removed or replaced after the plan was made, for example by another command in the same
// tree. A new plan will not have it.
func Overtaken(err error) bool {
	se, ok := errors.AsType[*fork.StepError](err)
	if !ok || se.Tag != mounts.TagOpen && se.Tag != mounts.TagCover && se.Tag != mounts.TagCheck {
		return false
	}
	switch se.Errno {
	case syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP, syscall.EINVAL, syscall.ESTALE:
		return true
	}
	return false
}

// forbidden reports whether an errno means that a call is forbidden here. Another command can
// cause other errors (see Overtaken), and those must not turn the namespace off.
func forbidden(errno syscall.Errno) bool {
	return errno == syscall.EPERM || errno == syscall.EACCES || errno == syscall.ENOSYS
}

// apparmorConfined has the label that AppArmor gives this process.
const apparmorConfined = "/proc/self/attr/apparmor/current"

// profileOf returns the profile of a label of AppArmor, such as "NAME (enforce)", or "" if it restricts nothing.
func profileOf(label string) string {
	i := strings.LastIndex(label, " (")
	if i < 0 || label[i:] == " (unconfined)" || label[i:] == " (complain)" {
		return ""
	}
	return label[:i]
}

// noNamespace returns why there is no namespace, or no file system for it. profile is that of AppArmor for this
// process, or "".
func noNamespace(se *fork.StepError, profile string) string {
	why := ""
	name := se.Name
	switch se.Errno {
	case syscall.ENOSYS:
		if se.Tag == mounts.TagOpen { // the kernel has openat2(2), since it has Landlock
			name = "openat2(2)"
			why = "; a seccomp filter refuses it, as that of systemd's RestrictSUIDSGID= and DynamicUser= does"
		}
	case syscall.EINVAL:
		if se.Tag != mounts.TagSetup { // which fails so in a chroot, where / is no mount
			why = "; such namespaces are not built into this kernel"
		}
	case syscall.ENOSPC:
		why = "; namespaces are switched off, or a limit around this container is reached " +
			"(sysctl user.max_user_namespaces and so on)"
	case syscall.EPERM, syscall.EACCES:
		why = "; a security module refuses it (AppArmor, Landlock, SELinux), or a container's seccomp filter"
		if profile != "" {
			why = "; zsbx runs under AppArmor's profile " + profile + ", which may refuse it, as another security " +
				"module or a container's seccomp filter may"
		}
		if profile != "" && se.Tag == mounts.TagUnshare {
			why += `; if that profile does, the line "userns," in it allows it`
		}
		if se.Tag == mounts.TagProc && se.Errno == syscall.EPERM {
			why = "; parts of the /proc here are covered, as in a container"
		}
	}
	return fmt.Sprintf("%s: %v%s", name, se.Errno, why)
}

// noOverlay returns why there is no overlay, and what helps. Before Linux 6.5 the kernel looks at all
// directories in the last step, and does not say which one it refuses.
func noOverlay(se *fork.StepError) string {
	why := ""
	switch se.Errno {
	case syscall.ENODEV:
		why = "; this kernel has no overlay, or can't load its module: try sudo modprobe overlay"
	case syscall.EOPNOTSUPP:
		why = "; the file system of zsbx's state has no user attributes (user.*), as tmpfs before Linux 6.6: " +
			"set XDG_STATE_HOME to a directory on another"
	case syscall.EPERM:
		why = "; ordinary users can make overlays since Linux 5.11"
	case syscall.EINVAL:
		why = "; the file system of the directory or of zsbx's state can't be part of an overlay, or Linux 5.11 is " +
			"needed: try a directory on another, or set XDG_STATE_HOME to one"
		if strings.Contains(se.Name, "upperdir") || strings.Contains(se.Name, "workdir") {
			why = "; layers can't be on the file system of zsbx's state: set XDG_STATE_HOME to a directory on another"
		}
	}
	return fmt.Sprintf("%s: %v%s", se.Name, se.Errno, why)
}

// isShortage reports whether a step failed for lack of something that may be available in a
// moment, so that the command must not run without it.
func isShortage(se *fork.StepError) bool {
	namespace := slices.Contains([]fork.Tag{mounts.TagUnshare, mounts.TagIPC, fork.TagNamespaces, tagNet}, se.Tag)
	if namespace && se.Errno == syscall.ENOSPC {
		return !namespacesOff(readSmall)
	}
	return fork.ShortageOf(se) != nil
}

// namespacesOff reports whether a reached limit of namespaces (ENOSPC, namespaces(7)) is a
// setting and no shortage. It is one if a limit is 0. It also counts as one if this process is
// not in the initial user namespace, which maps all ids, since the limits of an outer namespace
// can't be seen.
func namespacesOff(read func(file string) string) bool {
	for _, kind := range []string{"user", "mnt", "ipc", "pid", "net"} {
		if read("/proc/sys/user/max_"+kind+"_namespaces") == "0" {
			return true
		}
	}
	ids := strings.Fields(read("/proc/self/uid_map"))
	return len(ids) > 0 && !slices.Equal(ids, []string{"0", "0", "4294967295"})
}
