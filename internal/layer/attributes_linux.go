package layer

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// overlayPrefix begins the names of the kernel's own attributes in a layer. What a command sets by such a name
// gets another prefix after it (Linux 6.7 and later) or is refused.
const overlayPrefix = "user.overlay."

// kernelAttributes are those that say nothing about what the command saw.
var kernelAttributes = []string{"origin", "impure", "uuid", "nlink", "upper", "protattr"}

// maxAttribute is the most bytes of a value, and of all names (xattr(7)).
const maxAttribute = 64 << 10

// AttributesAt returns the extended attributes of an entry in an open directory that belong to the user: user.*
// but for the overlay's, access control lists and capabilities. It follows no link.
func AttributesAt(dir int, name string) (map[string][]byte, error) {
	a, err := attributesAt(dir, name)
	return a.own, err
}

// Unmark takes the kernel's own attributes of a layer off an open file.
func Unmark(fd int) error {
	for _, attr := range kernelAttributes {
		err := unix.Fremovexattr(fd, overlayPrefix+attr)
		if err != nil && err != unix.ENODATA {
			return err
		}
	}
	return nil
}

func attributesAt(dir int, name string) (a attributes, err error) {
	path := "/proc/self/fd/" + strconv.Itoa(dir) + "/" + name
	var small [1024]byte
	names := small[:]
	n, err := unix.Llistxattr(path, names)
	if err == unix.ERANGE {
		names = make([]byte, maxAttribute)
		n, err = unix.Llistxattr(path, names)
	}
	if err == unix.EOPNOTSUPP || n == 0 && err == nil {
		return a, nil
	}
	if err != nil {
		return a, &fs.PathError{Op: "listxattr", Path: name, Err: err}
	}
	var value []byte
	for attr := range strings.SplitSeq(strings.TrimSuffix(string(names[:n]), "\x00"), "\x00") {
		kernels, overlay := strings.CutPrefix(attr, overlayPrefix)
		a.origin = a.origin || overlay && kernels == "origin"
		if !overlay && !counts(attr) || overlay && slices.Contains(kernelAttributes, kernels) {
			continue
		}
		if value == nil { // most files have none that counts
			value = make([]byte, maxAttribute)
		}
		size, err := unix.Lgetxattr(path, attr, value)
		switch {
		case err != nil:
			return a, &fs.PathError{Op: "getxattr", Path: name, Err: fmt.Errorf("%s: %w", attr, err)}
		case overlay && kernels == "opaque" && string(value[:size]) == "y":
			a.opaque = true
		case overlay:
			a.strange = attr
		default:
			if a.own == nil {
				a.own = make(map[string][]byte)
			}
			a.own[attr] = bytes.Clone(value[:size])
		}
	}
	return a, nil
}

const aclPrefix = "system.posix_acl_" // access and default

// counts reports whether an attribute is part of what a command makes.
func counts(attr string) bool {
	return strings.HasPrefix(attr, "user.") || strings.HasPrefix(attr, aclPrefix) || attr == capabilityAttribute
}

// copyAttributes gives one directory the attributes of another one.
func copyAttributes(from, to *os.File) error {
	own, err := AttributesAt(int(from.Fd()), ".")
	for name, value := range own {
		if err == nil {
			err = unix.Fsetxattr(int(to.Fd()), name, value, 0)
		}
	}
	return err
}

// born returns when a file was made, 0 if the file system does not know.
func born(f *os.File) int64 {
	var st unix.Statx_t
	err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
}
