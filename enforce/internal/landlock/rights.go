package landlock

import (
	"cmp"
	"io/fs"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// Ruleset is the Landlock ruleset of a Plan: one for files, network and
// scopes together. Two would not do: a layer that handles no rights on files
// takes the right to rename between directories away from the others.
type Ruleset struct {
	ABI int // the version that the ruleset is made for

	HandledFS  uint64 // what is denied unless a rule allows it
	HandledNet uint64
	Scoped     uint64

	Paths []PathRule // sorted by path, without rules that add nothing
	Ports []PortRule // sorted by port
}

// RestrictFlags are those for landlock_restrict_self(2). Without LOG_NEW_EXEC_ON, which
// ABI 7 brought, the kernel logs no denial of a program that was executed after it, and so
// none of a command's: that is for the machine's own audit to see, if it has one
// (auditd(8), AUDIT_LANDLOCK_ACCESS).
func (rs *Ruleset) RestrictFlags() uint32 {
	if rs.ABI < 7 {
		return 0
	}
	return restrictLogNewExecOn
}

const restrictLogNewExecOn = 1 << 1

// PathRule allows rights on one file, or on a directory and all below it.
type PathRule struct {
	Path   string
	Rights uint64
	ID     policy.FileID // the inode that the path has to be when it is opened
	Dir    bool
	Part   bool // no rule names it, and it may be gone: files and processes come and go
	Origin policy.Origin
}

type PortRule struct {
	Port   uint16
	Rights uint64
	Origin policy.Origin
}

// The rights that stand for an access of a policy.
//
// Write stands for all that changes a tree, truncating included: O_TRUNC
// needs nothing but the right to truncate, so giving one without the other
// would be giving both. make_char and make_block are never given: making a
// device node needs CAP_MKNOD, and whoever has that could reach every disk
// through a node of its own.
const (
	readRights  = FSReadFile | FSReadDir
	execRights  = FSExecute
	writeRights = FSWriteFile | FSTruncate | FSRemoveDir | FSRemoveFile |
		FSMakeDir | FSMakeReg | FSMakeSock | FSMakeFifo | FSMakeSym | FSRefer

	// FileRights are those that a rule on something else than a
	// directory may hold; the kernel refuses others with EINVAL.
	FileRights = FSExecute | FSWriteFile | FSReadFile | FSTruncate | FSIoctlDev | FSResolveUnix
)

// Rights turns an access to a path into Landlock rights that a kernel knows.
func Rights(access policy.Access, path string, mode fs.FileMode, handled uint64) uint64 {
	var r uint64
	if access&policy.Read != 0 {
		r |= readRights
	}
	if access&policy.Exec != 0 {
		r |= execRights
	}
	if access&policy.Write != 0 {
		r |= writeRights
		if device(path, mode) {
			r |= FSIoctlDev
		}
	}
	if !mode.IsDir() {
		r &= FileRights
	}
	return r & handled
}

// device reports whether a writable rule is about devices by name, and so gets
// the right to ioctl(2): a device file itself (a terminal is of no use without
// tcsetattr(3), nor is /dev/kvm), or a directory of them (/dev/pts). A wider
// tree that happens to hold a device does not get it.
func device(path string, mode fs.FileMode) bool {
	return mode&fs.ModeDevice != 0 ||
		mode.IsDir() && (path == "/dev" || strings.HasPrefix(path, "/dev/"))
}

// MergeRules sorts rules by path, joins those on the same path and leaves out
// those that lie below others which allow as much: Landlock adds up what the
// rules on all ancestors allow, and each rule costs two system calls. The origin of a
// joined rule is that of the first.
func MergeRules(rules []PathRule) []PathRule {
	order := make([]int, len(rules)) // a rule is big to be moved
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(ComparePaths(rules[a].Path, rules[b].Path), a-b) })

	out := make([]PathRule, 0, len(rules))
	var open []PathRule // the directories that the current path lies below, with what is allowed there in all
	for i := 0; i < len(order); {
		r := rules[order[i]]
		for i++; i < len(order) && rules[order[i]].Path == r.Path; i++ {
			r.Rights |= rules[order[i]].Rights
			r.Part = r.Part && rules[order[i]].Part
		}
		for len(open) > 0 && !policy.Within(r.Path, open[len(open)-1].Path) {
			open = open[:len(open)-1]
		}
		var have uint64
		if len(open) > 0 {
			have = open[len(open)-1].Rights
		}
		if r.Rights&^have == 0 {
			continue
		}
		out = append(out, r)
		if r.Dir {
			open = append(open, PathRule{Path: r.Path, Rights: have | r.Rights})
		}
	}
	return out
}

// ComparePaths sorts a directory right before what lies below it: as strings,
// with "/" before every other byte.
func ComparePaths(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] == b[i] {
			continue
		}
		if a[i] == '/' {
			return -1
		}
		if b[i] == '/' {
			return 1
		}
		return cmp.Compare(a[i], b[i])
	}
	return cmp.Compare(len(a), len(b))
}
