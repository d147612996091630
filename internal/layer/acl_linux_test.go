package layer

import (
	"encoding/binary"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// acl makes an access control list of pairs of a tag and permissions: 1 is the owner, 2 a user, 4 the group, 8 another
// group, 16 the mask and 32 all others.
func acl(pairs ...uint16) []byte {
	b := []byte{2, 0, 0, 0}
	for i := 0; i < len(pairs); i += 2 {
		id := uint32(0xffffffff)
		if pairs[i] == 2 || pairs[i] == 8 {
			id = 0
		}
		b = binary.LittleEndian.AppendUint16(b, pairs[i])
		b = binary.LittleEndian.AppendUint16(b, pairs[i+1])
		b = binary.LittleEndian.AppendUint32(b, id)
	}
	return b
}

// TestOpens: a list lets others write if all may, or a user or a group that the mask does not keep from it.
func TestOpens(t *testing.T) {
	for _, c := range []struct {
		acl  []byte
		want bool
	}{
		{acl(1, 7, 4, 7, 32, 5), false},
		{acl(1, 7, 4, 5, 32, 7), true},
		{acl(1, 7, 2, 7, 4, 5, 16, 7, 32, 0), true},
		{acl(1, 7, 2, 7, 4, 5, 16, 5, 32, 0), false},
		{acl(1, 7, 4, 5, 8, 2, 16, 2, 32, 0), true},
		{acl(1, 7, 4, 5, 8, 5, 16, 7, 32, 0), false},
		{nil, false},
		{[]byte{2, 0, 0, 0, 32, 0, 7}, false},
	} {
		if got := opens(c.acl); got != c.want {
			t.Errorf("%v: %v", c.acl, got)
		}
	}
}

// TestShares: a default access control list that lets others write is noted if it is new. The controls: one that the
// tree has there, one that a new directory got from the one that it is in, and one that lets nobody in.
func TestShares(t *testing.T) {
	x := newTried(t, "mkdir set same close")
	open := acl(1, 7, 4, 5, 32, 7)
	upper := x.layer.TreeDir(0) + "/upper"
	set := func(name string, acl []byte) {
		if err := unix.Setxattr(name, defaultACL, acl, 0); err != nil {
			t.Fatal(err)
		}
	}
	set(filepath.Join(x.tree, "same"), open)
	x.insideOnly("chmod 700 set same close; mkdir same/below new")
	set(filepath.Join(upper, "set"), open)
	set(filepath.Join(upper, "close"), acl(1, 7, 4, 5, 32, 5))
	set(filepath.Join(upper, "new"), open)
	want := map[string]bool{"set": true, "same": false, "same/below": false, "close": false, "new": true}
	for _, c := range x.changes() {
		shares, is := want[c.Path]
		if !is || c.Shares != shares {
			t.Errorf("%+v", c)
		}
		delete(want, c.Path)
	}
	if len(want) > 0 {
		t.Errorf("no changes: %v", want)
	}
}
