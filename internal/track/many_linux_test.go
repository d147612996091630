package track

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// highestDescriptor returns the highest descriptor that this process has open.
func highestDescriptor(t *testing.T) int {
	t.Helper()
	ents, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	highest := 0
	for _, e := range ents {
		n, _ := strconv.Atoi(e.Name())
		highest = max(highest, n)
	}
	return highest
}

// TestManySessions: listing keeps no files open, and finding one of many needs no listing.
func TestManySessions(t *testing.T) {
	st := tempStore(t)
	const many = 300
	for n := range many {
		_, f, err := st.create(fmt.Sprintf("%08x-7dec-41d0-a765-00a0c91e6bf6", n))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	less := was
	less.Cur = uint64(highestDescriptor(t)) + many/4
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &less); err != nil {
		t.Fatal(err)
	}
	ls, err := st.List()
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &was)
	if err != nil || len(ls) != many {
		t.Errorf("%d sessions, %v", len(ls), err)
	}
	if rs, err := st.Prune(deadline(t)); err != nil || len(rs) != many {
		t.Errorf("%d pruned, %v", len(rs), err)
	}
}
