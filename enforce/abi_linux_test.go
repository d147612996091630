package enforce

import (
	"testing"

	"golang.org/x/sys/unix"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"github.com/zsbx/zsbx/enforce/internal/landlock"
	"github.com/zsbx/zsbx/enforce/internal/seccomp"
)

// TestConstants compares what this package repeats with what others say.
func TestConstants(t *testing.T) {
	for name, pair := range map[string][2]uint64{
		"execute":       {landlock.FSExecute, unix.LANDLOCK_ACCESS_FS_EXECUTE},
		"write_file":    {landlock.FSWriteFile, unix.LANDLOCK_ACCESS_FS_WRITE_FILE},
		"read_file":     {landlock.FSReadFile, unix.LANDLOCK_ACCESS_FS_READ_FILE},
		"read_dir":      {landlock.FSReadDir, unix.LANDLOCK_ACCESS_FS_READ_DIR},
		"remove_dir":    {landlock.FSRemoveDir, unix.LANDLOCK_ACCESS_FS_REMOVE_DIR},
		"remove_file":   {landlock.FSRemoveFile, unix.LANDLOCK_ACCESS_FS_REMOVE_FILE},
		"make_char":     {landlock.FSMakeChar, unix.LANDLOCK_ACCESS_FS_MAKE_CHAR},
		"make_dir":      {landlock.FSMakeDir, unix.LANDLOCK_ACCESS_FS_MAKE_DIR},
		"make_reg":      {landlock.FSMakeReg, unix.LANDLOCK_ACCESS_FS_MAKE_REG},
		"make_sock":     {landlock.FSMakeSock, unix.LANDLOCK_ACCESS_FS_MAKE_SOCK},
		"make_fifo":     {landlock.FSMakeFifo, unix.LANDLOCK_ACCESS_FS_MAKE_FIFO},
		"make_block":    {landlock.FSMakeBlock, unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK},
		"make_sym":      {landlock.FSMakeSym, unix.LANDLOCK_ACCESS_FS_MAKE_SYM},
		"refer":         {landlock.FSRefer, unix.LANDLOCK_ACCESS_FS_REFER},
		"truncate":      {landlock.FSTruncate, unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		"ioctl_dev":     {landlock.FSIoctlDev, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
		"resolve_unix":  {landlock.FSResolveUnix, ll.AccessFSResolveUnix},
		"bind_tcp":      {landlock.NetBindTCP, unix.LANDLOCK_ACCESS_NET_BIND_TCP},
		"connect_tcp":   {landlock.NetConnectTCP, unix.LANDLOCK_ACCESS_NET_CONNECT_TCP},
		"bind_udp":      {landlock.NetBindUDP, ll.AccessNetBindUDP},
		"send_udp":      {landlock.NetConnectSendUDP, ll.AccessNetConnectSendUDP},
		"abstract":      {landlock.ScopeAbstractUnix, unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET},
		"signal":        {landlock.ScopeSignal, unix.LANDLOCK_SCOPE_SIGNAL},
		"log same exec": {uint64(landlock.RestrictLogSameExecOff), unix.LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF},
		"log new exec":  {uint64(landlock.RestrictLogNewExecOn), unix.LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON},
		"log subdomain": {uint64(landlock.RestrictLogSubdomainsOff), unix.LANDLOCK_RESTRICT_SELF_LOG_SUBDOMAINS_OFF},
		"tsync":         {uint64(landlock.RestrictTSync), unix.LANDLOCK_RESTRICT_SELF_TSYNC},
		"no new privs":  {uint64(landlock.RestrictNoNewPrivs), ll.FlagRestrictSelfNoNewPrivs},

		"allow":      {seccomp.ActAllow, unix.SECCOMP_RET_ALLOW},
		"kill":       {seccomp.ActKill, unix.SECCOMP_RET_KILL_PROCESS},
		"errno":      {seccomp.ActErrno, unix.SECCOMP_RET_ERRNO},
		"spec allow": {seccomp.FilterSpecAllow, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW},
		"EPERM":      {seccomp.RefuseEPERM &^ seccomp.ActErrno, uint64(unix.EPERM)},
		"EACCES":     {seccomp.RefuseEACCES &^ seccomp.ActErrno, uint64(unix.EACCES)},
		"ENOSYS":     {seccomp.RefuseENOSYS &^ seccomp.ActErrno, uint64(unix.ENOSYS)},
		"ENOPROTO":   {seccomp.RefuseENOPROTOOPT &^ seccomp.ActErrno, uint64(unix.ENOPROTOOPT)},
		"EPROTO":     {seccomp.RefuseEPROTONOSUPPORT &^ seccomp.ActErrno, uint64(unix.EPROTONOSUPPORT)},
		"EOPNOTSUPP": {seccomp.RefuseEOPNOTSUPP &^ seccomp.ActErrno, uint64(unix.EOPNOTSUPP)},
		"EAFNOSUPP":  {seccomp.RefuseEAFNOSUPPORT &^ seccomp.ActErrno, uint64(unix.EAFNOSUPPORT)},
		"TIOCSTI":    {0x5412, unix.TIOCSTI},
		"TIOCLINUX":  {0x541c, unix.TIOCLINUX},
		"TIOCSETD":   {0x5423, unix.TIOCSETD},
		"F_SETLEASE": {1024, unix.F_SETLEASE},
		"AF_UNIX":    {seccomp.AfUnix, unix.AF_UNIX},
		"AF_INET":    {seccomp.AfInet, unix.AF_INET},
		"AF_INET6":   {seccomp.AfInet6, unix.AF_INET6},
		"AF_NETLINK": {seccomp.AfNetlink, unix.AF_NETLINK},
		"ROUTE":      {seccomp.NetlinkRoute, unix.NETLINK_ROUTE},
		"UEVENT":     {seccomp.NetlinkUevent, unix.NETLINK_KOBJECT_UEVENT},
		"STREAM":     {seccomp.SockStream, unix.SOCK_STREAM},
		"FASTOPEN":   {0x20000000, unix.MSG_FASTOPEN},
		"TCP_ULP":    {31, unix.TCP_ULP},
		"TRUNC":      {0o1000, unix.O_TRUNC},
		"CAP_KILL":   {capKill, unix.CAP_KILL},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %#x, want %#x", name, pair[0], pair[1])
		}
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
