package fork

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestShortageOf: a shortage, which may be over in a moment, differs from a missing capability
// and names the limit.
func TestShortageOf(t *testing.T) {
	short := map[error]string{
		syscall.EMFILE: "ulimit -n",
		syscall.ENFILE: "fs.file-max",
		syscall.ENOMEM: "ulimit -v",
		syscall.EAGAIN: "ulimit -u",
		syscall.ENOSPC: "df -h",
		syscall.EDQUOT: "quota",
		syscall.EFBIG:  "ulimit -f",
		syscall.EINTR:  "signals",
		fmt.Errorf("recording: %w", &os.PathError{Op: "write", Err: syscall.ENOBUFS}): "sockets",
		&StepError{Stage: "before", Name: "unshare(2)", Errno: syscall.ENOSPC}:        "sysctl user",
		&StepError{Stage: "exec", Name: "/bin/true", Errno: syscall.ENOMEM}:           "memory",
	}
	for err, word := range short {
		if s := ShortageOf(err); s == nil || !strings.Contains(s.What, word) {
			t.Errorf("%v: %+v, want one that names %q", err, s, word)
		}
	}
	for _, err := range []error{nil, ErrKeeperLost, syscall.EPERM, syscall.EACCES, syscall.ENOSYS, syscall.EINVAL, syscall.ENOENT,
		syscall.EOPNOTSUPP, syscall.E2BIG, syscall.EBUSY, syscall.EIO, syscall.Errno(0)} {
		if s := ShortageOf(err); s != nil {
			t.Errorf("%v: %+v, want none", err, s)
		}
	}
}

// TestRetry: an interrupted call is repeated, but not for ever.
func TestRetry(t *testing.T) {
	for _, test := range []struct {
		interrupted, calls int
		want               syscall.Errno
	}{{0, 1, syscall.ENOSYS}, {3, 4, syscall.ENOSYS}, {1 << 20, interruptions + 1, syscall.EINTR}} {
		n := 0
		got := Retry(func() syscall.Errno {
			n++
			if n <= test.interrupted {
				return syscall.EINTR
			}
			return syscall.ENOSYS
		})
		if got != test.want || n != test.calls {
			t.Errorf("interrupted %d times: %v after %d calls, want %v after %d", test.interrupted, got, n, test.want, test.calls)
		}
	}
}
