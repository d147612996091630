package cmd

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPoolHandsNothingOn: what a command gives its temporary directory beside
// files is not there for the next one, whose files would take it over. The
// control: without the look at it they do.
func TestPoolHandsNothingOn(t *testing.T) {
	acl := binary.LittleEndian.AppendUint32(nil, 2) // acl(5): user, group and others may all
	for _, tag := range []uint16{1, 4, 0x20} {
		acl = binary.LittleEndian.AppendUint16(acl, tag)
		acl = binary.LittleEndian.AppendUint16(acl, 7)
		acl = binary.LittleEndian.AppendUint32(acl, ^uint32(0))
	}
	for name, spoil := range map[string]func(fd int) error{
		"a default ACL": func(fd int) error { return unix.Fsetxattr(fd, "system.posix_acl_default", acl, 0) },
		"an attribute":  func(fd int) error { return unix.Fsetxattr(fd, "user.note", []byte("x"), 0) },
		"a flag":        func(fd int) error { return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, 0x40) }, // FS_NODUMP_FL
	} {
		for _, sub := range []string{"", "run"} {
			t.Run(name+sub, func(t *testing.T) {
				dir, err := os.MkdirTemp(poolParent, "zsbx-")
				if err != nil {
					t.Fatal(err)
				}
				defer os.RemoveAll(dir)
				if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
					t.Fatal(err)
				}
				if !isPristine(dir) {
					t.Fatal("a new directory can't be laid aside")
				}
				fd, err := openOwnDir(filepath.Join(dir, sub))
				if err != nil {
					t.Fatal(err)
				}
				defer unix.Close(fd)
				if err := spoil(fd); err != nil {
					t.Skipf("the file system of %s has none: %v", poolParent, err)
				}
				if name == "a default ACL" {
					file := filepath.Join(dir, sub, "file")
					if err := os.WriteFile(file, nil, 0o666); err != nil {
						t.Fatal(err)
					}
					if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o666 {
						t.Errorf("control: the file has %v, %v: the umask was to be passed over", st.Mode(), err)
					}
					os.Remove(file)
				}
				if layAside(dir) {
					t.Error("laid aside")
				}
			})
		}
	}
}
