package layer

import (
	"bytes"
	"encoding/binary"
)

// defaultACL is the attribute with the access control list that a directory gives to what is made in it (acl(5)).
const defaultACL = "system.posix_acl_default"

// opens reports whether an access control list lets others write than the owner and its group.
func opens(acl []byte) bool {
	const header, size, write = 4, 8, 2
	const user, group, mask, other = 0x02, 0x08, 0x10, 0x20
	if len(acl) < header {
		return false
	}
	most := uint16(write)
	var named, all uint16
	for rest := acl[header:]; len(rest) >= size; rest = rest[size:] {
		permissions := binary.LittleEndian.Uint16(rest[2:])
		switch binary.LittleEndian.Uint16(rest) {
		case user, group:
			named |= permissions
		case mask:
			most = permissions
		case other:
			all |= permissions
		}
	}
	return (named&most|all)&write != 0
}

// shares reports whether a directory has a default access control list that lets others write, and has it neither from
// the tree nor, if it is new, from the directory that it is in.
func shares(up, low *entry, a attributes) bool {
	acl := a.own[defaultACL]
	if !up.isDir() || !opens(acl) {
		return false
	}
	from := low
	if low == nil {
		from, _ = look(up.dir, ".")
	}
	if from == nil {
		return true
	}
	had, err := from.attributes()
	return err != nil || !bytes.Equal(acl, had.own[defaultACL])
}
