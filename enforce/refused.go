package enforce

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/internal/mounts"
)

// Refused are the capabilities of this machine without the namespace that the kernel or
// a security module refused, if it is for that that a command could not be started. The
// command did not run then; a plan made with them does without, and has the gaps to show
// for it.
func (p *Plan) Refused(err error) (Caps, bool) {
	if p == nil {
		return Caps{}, false
	}
	se, ok := errors.AsType[*fork.StepError](err)
	caps := p.Caps
	if p.Mounts == nil || !ok || isShortage(se) {
		return caps, false
	}
	why := noNamespace(se)
	switch {
	case se.Tag == mounts.TagUnshare, se.Tag == mounts.TagSetup, se.Tag == mounts.TagCover && forbidden(se.Errno):
		caps.MountNS, caps.MountReason, caps.MountHint = false, why, ""
		if p.Mounts.UserNS {
			caps.MountHint = lateHint(se.Errno)
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

// Overtaken reports whether a command could not be started since a file that is denied or
// protected was removed or replaced after the plan was made, as by another command in the
// same tree. A plan that is made anew does not name it.
func Overtaken(err error) bool {
	se, ok := errors.AsType[*fork.StepError](err)
	if !ok || se.Tag != mounts.TagOpen && se.Tag != mounts.TagCover && se.Tag != mounts.TagCheck {
		return false
	}
	return slices.Contains([]syscall.Errno{syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP, syscall.EINVAL, syscall.ESTALE}, se.Errno)
}

// forbidden tells what forbids a call from what another command can bring about (see
// Overtaken): it must not take the namespace away.
func forbidden(errno syscall.Errno) bool {
	return errno == syscall.EPERM || errno == syscall.EACCES || errno == syscall.ENOSYS
}

// noNamespace says why there is no namespace, or no file system for it.
func noNamespace(se *fork.StepError) string {
	why := ""
	switch {
	case se.Tag == mounts.TagProc && se.Errno == syscall.EPERM:
		why = "; parts of the /proc here are covered, as in a container"
	case se.Errno == syscall.EINVAL && se.Tag != mounts.TagSetup: // in a chroot / is no mount
		why = "; such namespaces are not built into this kernel"
	case se.Errno == syscall.ENOSPC:
		why = "; namespaces are switched off, or used up around this container (sysctl user.max_user_namespaces and the like)"
	case se.Errno == syscall.EPERM, se.Errno == syscall.EACCES:
		why = "; a security module refuses it (AppArmor, Landlock, SELinux), or a container's seccomp filter"
	}
	return fmt.Sprintf("%s: %v%s", se.Name, se.Errno, why)
}

// isShortage reports whether a step failed for what may be there again in a
// moment, so that the command must not do without.
func isShortage(se *fork.StepError) bool {
	if se.Errno == syscall.ENOSPC && (se.Tag == mounts.TagUnshare || se.Tag == mounts.TagIPC || se.Tag == fork.TagNamespaces) {
		return !namespacesOff(readSmall)
	}
	return fork.ShortageOf(se) != nil
}

// namespacesOff reports whether a limit of namespaces that is reached (ENOSPC,
// namespaces(7)) is how this machine was set up: it is 0, or that of a user
// namespace around this one, which can't be seen from here and may be as low as
// its maker wanted. The initial user namespace is the one that maps all ids.
func namespacesOff(read func(file string) string) bool {
	for _, kind := range []string{"user", "mnt", "ipc", "pid"} {
		if read("/proc/sys/user/max_"+kind+"_namespaces") == "0" {
			return true
		}
	}
	ids := strings.Fields(read("/proc/self/uid_map"))
	return len(ids) > 0 && !slices.Equal(ids, []string{"0", "0", "4294967295"})
}
