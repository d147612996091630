package landlock

import (
	"testing"

	"golang.org/x/sys/unix"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// TestConstants compares this package's constants with those of others.
func TestConstants(t *testing.T) {
	for name, pair := range map[string][2]uint64{
		"execute":      {FSExecute, unix.LANDLOCK_ACCESS_FS_EXECUTE},
		"write_file":   {FSWriteFile, unix.LANDLOCK_ACCESS_FS_WRITE_FILE},
		"read_file":    {FSReadFile, unix.LANDLOCK_ACCESS_FS_READ_FILE},
		"read_dir":     {FSReadDir, unix.LANDLOCK_ACCESS_FS_READ_DIR},
		"remove_dir":   {FSRemoveDir, unix.LANDLOCK_ACCESS_FS_REMOVE_DIR},
		"remove_file":  {FSRemoveFile, unix.LANDLOCK_ACCESS_FS_REMOVE_FILE},
		"make_char":    {FSMakeChar, unix.LANDLOCK_ACCESS_FS_MAKE_CHAR},
		"make_dir":     {FSMakeDir, unix.LANDLOCK_ACCESS_FS_MAKE_DIR},
		"make_reg":     {FSMakeReg, unix.LANDLOCK_ACCESS_FS_MAKE_REG},
		"make_sock":    {FSMakeSock, unix.LANDLOCK_ACCESS_FS_MAKE_SOCK},
		"make_fifo":    {FSMakeFifo, unix.LANDLOCK_ACCESS_FS_MAKE_FIFO},
		"make_block":   {FSMakeBlock, unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK},
		"make_sym":     {FSMakeSym, unix.LANDLOCK_ACCESS_FS_MAKE_SYM},
		"refer":        {FSRefer, unix.LANDLOCK_ACCESS_FS_REFER},
		"truncate":     {FSTruncate, unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		"ioctl_dev":    {FSIoctlDev, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
		"resolve_unix": {FSResolveUnix, ll.AccessFSResolveUnix},
		"bind_tcp":     {NetBindTCP, unix.LANDLOCK_ACCESS_NET_BIND_TCP},
		"connect_tcp":  {NetConnectTCP, unix.LANDLOCK_ACCESS_NET_CONNECT_TCP},
		"bind_udp":     {NetBindUDP, ll.AccessNetBindUDP},
		"send_udp":     {NetConnectSendUDP, ll.AccessNetConnectSendUDP},
		"abstract":     {ScopeAbstractUnix, unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET},
		"signal":       {ScopeSignal, unix.LANDLOCK_SCOPE_SIGNAL},
		"log new exec": {restrictLogNewExecOn, unix.LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %#x, want %#x", name, pair[0], pair[1])
		}
	}
}
