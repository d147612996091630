package enforce

import (
	"testing"

	"golang.org/x/sys/unix"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// TestConstants compares what this package repeats with what others say.
func TestConstants(t *testing.T) {
	for name, pair := range map[string][2]uint64{
		"execute":       {fsExecute, unix.LANDLOCK_ACCESS_FS_EXECUTE},
		"write_file":    {fsWriteFile, unix.LANDLOCK_ACCESS_FS_WRITE_FILE},
		"read_file":     {fsReadFile, unix.LANDLOCK_ACCESS_FS_READ_FILE},
		"read_dir":      {fsReadDir, unix.LANDLOCK_ACCESS_FS_READ_DIR},
		"remove_dir":    {fsRemoveDir, unix.LANDLOCK_ACCESS_FS_REMOVE_DIR},
		"remove_file":   {fsRemoveFile, unix.LANDLOCK_ACCESS_FS_REMOVE_FILE},
		"make_char":     {fsMakeChar, unix.LANDLOCK_ACCESS_FS_MAKE_CHAR},
		"make_dir":      {fsMakeDir, unix.LANDLOCK_ACCESS_FS_MAKE_DIR},
		"make_reg":      {fsMakeReg, unix.LANDLOCK_ACCESS_FS_MAKE_REG},
		"make_sock":     {fsMakeSock, unix.LANDLOCK_ACCESS_FS_MAKE_SOCK},
		"make_fifo":     {fsMakeFifo, unix.LANDLOCK_ACCESS_FS_MAKE_FIFO},
		"make_block":    {fsMakeBlock, unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK},
		"make_sym":      {fsMakeSym, unix.LANDLOCK_ACCESS_FS_MAKE_SYM},
		"refer":         {fsRefer, unix.LANDLOCK_ACCESS_FS_REFER},
		"truncate":      {fsTruncate, unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		"ioctl_dev":     {fsIoctlDev, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
		"resolve_unix":  {fsResolveUnix, ll.AccessFSResolveUnix},
		"bind_tcp":      {netBindTCP, unix.LANDLOCK_ACCESS_NET_BIND_TCP},
		"connect_tcp":   {netConnectTCP, unix.LANDLOCK_ACCESS_NET_CONNECT_TCP},
		"bind_udp":      {netBindUDP, ll.AccessNetBindUDP},
		"send_udp":      {netConnectSendUDP, ll.AccessNetConnectSendUDP},
		"abstract":      {scopeAbstractUnix, unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET},
		"signal":        {scopeSignal, unix.LANDLOCK_SCOPE_SIGNAL},
		"log same exec": {uint64(restrictLogSameExecOff), unix.LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF},
		"log new exec":  {uint64(restrictLogNewExecOn), unix.LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON},
		"log subdomain": {uint64(restrictLogSubdomainsOff), unix.LANDLOCK_RESTRICT_SELF_LOG_SUBDOMAINS_OFF},
		"tsync":         {uint64(restrictTSync), unix.LANDLOCK_RESTRICT_SELF_TSYNC},
		"no new privs":  {uint64(restrictNoNewPrivs), ll.FlagRestrictSelfNoNewPrivs},

		"allow":      {actAllow, unix.SECCOMP_RET_ALLOW},
		"kill":       {actKill, unix.SECCOMP_RET_KILL_PROCESS},
		"errno":      {actErrno, unix.SECCOMP_RET_ERRNO},
		"spec allow": {filterSpecAllow, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW},
		"EPERM":      {refuseEPERM &^ actErrno, uint64(unix.EPERM)},
		"EACCES":     {refuseEACCES &^ actErrno, uint64(unix.EACCES)},
		"ENOSYS":     {refuseENOSYS &^ actErrno, uint64(unix.ENOSYS)},
		"ENOPROTO":   {refuseENOPROTOOPT &^ actErrno, uint64(unix.ENOPROTOOPT)},
		"EPROTO":     {refuseEPROTONOSUPPORT &^ actErrno, uint64(unix.EPROTONOSUPPORT)},
		"EOPNOTSUPP": {refuseEOPNOTSUPP &^ actErrno, uint64(unix.EOPNOTSUPP)},
		"EAFNOSUPP":  {refuseEAFNOSUPPORT &^ actErrno, uint64(unix.EAFNOSUPPORT)},
		"TIOCSTI":    {0x5412, unix.TIOCSTI},
		"TIOCLINUX":  {0x541c, unix.TIOCLINUX},
		"TIOCSETD":   {0x5423, unix.TIOCSETD},
		"F_SETLEASE": {1024, unix.F_SETLEASE},
		"AF_UNIX":    {afUnix, unix.AF_UNIX},
		"AF_INET":    {afInet, unix.AF_INET},
		"AF_INET6":   {afInet6, unix.AF_INET6},
		"AF_NETLINK": {afNetlink, unix.AF_NETLINK},
		"ROUTE":      {netlinkRoute, unix.NETLINK_ROUTE},
		"UEVENT":     {netlinkUevent, unix.NETLINK_KOBJECT_UEVENT},
		"STREAM":     {sockStream, unix.SOCK_STREAM},
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
