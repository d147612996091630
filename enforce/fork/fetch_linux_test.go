package fork

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestFetcher: by way of its keeper, memory and descriptors of a session can be
// had by somebody else; of what is not there, the kernel's own error.
func TestFetcher(t *testing.T) {
	p, _ := shell(t, &Keeper{}, "exec sleep 1000 3</etc/passwd")
	line, err := p.Line()
	if err != nil || line == nil {
		t.Fatal(line, err)
	}
	defer line.Close()
	f := NewFetcher(int(line.Fd()))
	var theirs, own unix.Stat_t
	if err := unix.Stat("/etc/passwd", &own); err != nil {
		t.Fatal(err)
	}
	errno := unix.EBADF
	for i := 0; theirs.Ino != own.Ino && i < 1000; i++ { // before, it is nothing or a library
		time.Sleep(time.Millisecond)
		var fd int
		if fd, errno = f.Descriptor(p.Pid, 0, 3); errno == 0 {
			unix.Fstat(fd, &theirs)
			unix.Close(fd)
		}
	}
	if theirs.Ino != own.Ino {
		t.Errorf("descriptor 3: %v, inode %d, want %d", errno, theirs.Ino, own.Ino)
	}
	stack, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
	if err != nil {
		t.Fatal(err)
	}
	at, err := strconv.ParseUint(strings.Fields(string(stack))[27], 10, 64) // startstack
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 128, 4096} {
		buf, want := make([]byte, size), make([]byte, size)
		mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", p.Pid))
		if err != nil {
			t.Fatal(err)
		}
		mem.ReadAt(want, int64(at))
		mem.Close()
		n, errno := f.Memory(p.Pid, at, buf)
		if errno != 0 || n == 0 || string(buf) != string(want) {
			t.Errorf("%d bytes: %d, %v", size, n, errno)
		}
	}
	for name, errno := range map[string]unix.Errno{
		"EFAULT": second(f.Memory(p.Pid, 8, make([]byte, 8))), "ESRCH": second(f.Memory(1<<30, at, make([]byte, 8))),
		"EBADF": second(f.Descriptor(p.Pid, 0, 99)), "EINVAL": second(f.Descriptor(p.Pid, 1, 0)),
	} {
		if unix.ErrnoName(errno) != name {
			t.Errorf("%v, want %s", errno, name)
		}
	}
	p.Kill()
	finish(t, p)
	if n, errno := f.Memory(p.Pid, at, make([]byte, 8)); errno != unix.ESRCH {
		t.Errorf("after the end: %d, %v", n, errno)
	}
}

func second[T any](_ T, errno unix.Errno) unix.Errno { return errno }
