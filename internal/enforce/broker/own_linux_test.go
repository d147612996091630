package broker

import (
	"encoding/binary"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/fork"
)

// TestNoNetwork: a network that can't be made is asked for once. After a shortage each socket asks again.
func TestNoNetwork(t *testing.T) {
	for why, want := range map[unix.Errno]struct {
		asked int
		errno unix.Errno
		fault string
	}{
		unix.EPERM:        {1, unix.EACCES, "the command can reach no host: "},
		unix.EAFNOSUPPORT: {1, unix.EACCES, "the command can reach no host: "},
		unix.ENOSPC:       {3, unix.EACCES, "the next one is tried again"},
		unix.ENOMEM:       {3, unix.ENOMEM, "the next one is tried again"},
		unix.EMFILE:       {3, unix.EMFILE, "the next one is tried again"},
	} {
		var o OwnNet
		if err := o.Open(); err != nil {
			t.Fatal(err)
		}
		asked := make(chan int)
		go func() { asked <- refusing(int(o.far.Fd()), why) }()
		for range 3 {
			_, errno := o.Socket(fork.SocketRequest{Family: unix.AF_INET, Kind: unix.SOCK_STREAM})
			if errno != want.errno || !strings.Contains(o.fault, want.fault) || !strings.Contains(o.fault, why.Error()) {
				t.Errorf("%v: %v, %q", why, errno, o.fault)
			}
		}
		o.Close()
		if n := <-asked; n != want.asked {
			t.Errorf("%v: asked %d times, want %d", why, n, want.asked)
		}
		o.far.Close()
	}
}

// refusing answers requests as a keeper that can't make the network, and counts them.
func refusing(line int, why unix.Errno) (n int) {
	request := make([]byte, 64)
	for {
		size, _ := unix.Read(line, request)
		if size <= 0 {
			return n
		}
		n++
		_ = unix.Send(line, binary.NativeEndian.AppendUint32(nil, uint32(why|fork.NoNetwork)), 0)
	}
}
