package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestConstants compares this package's constants with those of others.
func TestConstants(t *testing.T) {
	for name, pair := range map[string][2]uint64{
		"allow":      {ActAllow, unix.SECCOMP_RET_ALLOW},
		"kill":       {ActKill, unix.SECCOMP_RET_KILL_PROCESS},
		"errno":      {ActErrno, unix.SECCOMP_RET_ERRNO},
		"spec allow": {FilterSpecAllow, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW},
		"EPERM":      {RefuseEPERM &^ ActErrno, uint64(unix.EPERM)},
		"EACCES":     {RefuseEACCES &^ ActErrno, uint64(unix.EACCES)},
		"ENOSYS":     {RefuseENOSYS &^ ActErrno, uint64(unix.ENOSYS)},
		"ENOPROTO":   {RefuseENOPROTOOPT &^ ActErrno, uint64(unix.ENOPROTOOPT)},
		"EPROTO":     {RefuseEPROTONOSUPPORT &^ ActErrno, uint64(unix.EPROTONOSUPPORT)},
		"EOPNOTSUPP": {RefuseEOPNOTSUPP &^ ActErrno, uint64(unix.EOPNOTSUPP)},
		"EAFNOSUPP":  {RefuseEAFNOSUPPORT &^ ActErrno, uint64(unix.EAFNOSUPPORT)},
		"TIOCSTI":    {0x5412, unix.TIOCSTI},
		"TIOCLINUX":  {0x541c, unix.TIOCLINUX},
		"TIOCSETD":   {0x5423, unix.TIOCSETD},
		"F_SETLEASE": {1024, unix.F_SETLEASE},
		"AF_UNIX":    {AfUnix, unix.AF_UNIX},
		"AF_INET":    {AfInet, unix.AF_INET},
		"AF_INET6":   {AfInet6, unix.AF_INET6},
		"AF_NETLINK": {AfNetlink, unix.AF_NETLINK},
		"ROUTE":      {NetlinkRoute, unix.NETLINK_ROUTE},
		"UEVENT":     {NetlinkUevent, unix.NETLINK_KOBJECT_UEVENT},
		"STREAM":     {SockStream, unix.SOCK_STREAM},
		"FASTOPEN":   {0x20000000, unix.MSG_FASTOPEN},
		"TCP_ULP":    {31, unix.TCP_ULP},
		"TRUNC":      {0o1000, unix.O_TRUNC},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %#x, want %#x", name, pair[0], pair[1])
		}
	}
}
