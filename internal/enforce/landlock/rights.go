package landlock

import (
	"cmp"
	"io/fs"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/policy"
)

// Ruleset is the Landlock ruleset of a Plan, for files, network and scopes together. Two
// rulesets would not work: a layer that handles no file rights forbids renaming between
// directories.
type Ruleset struct {
	ABI int // the version that the ruleset is for

	HandledFS  uint64 // denied unless a rule allows it
	HandledNet uint64
	Scoped     uint64

	Paths []PathRule // sorted by path, without rules that add nothing
	Ports []PortRule // sorted by port
}

// RestrictFlags returns the flags for landlock_restrict_self(2). Without LOG_NEW_EXEC_ON (ABI
// 7) the kernel logs no denials of programs that are executed later, so none of the command's.
// With it the machine's audit system can see them (auditd(8), AUDIT_LANDLOCK_ACCESS).
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
	ID     host.FileID // the inode that the path must be when opened
	Dir    bool
	Part   bool // no rule names it; it may be gone, since files and processes come and go
	Origin policy.Origin

	// Overlay says that the command sees another file there, in an overlay. AddRules only compares
	// the inode. Who makes the overlay adds the rule.
	Overlay bool
}

type PortRule struct {
	Port   uint16
	Rights uint64
	Origin policy.Origin
}

// The rights for each access of a policy.
//
// Write has all rights that change a tree, including truncate: O_TRUNC needs only the right to
// truncate, which amounts to writing. make_char and make_block are never given. With CAP_MKNOD
// they would open every disk through a new device node.
const (
	readRights  = FSReadFile | FSReadDir
	execRights  = FSExecute
	writeRights = FSWriteFile | FSTruncate | FSRemoveDir | FSRemoveFile |
		FSMakeDir | FSMakeReg | FSMakeSock | FSMakeFifo | FSMakeSym | FSRefer

	// FileRights are the rights that a rule on anything but a directory may have. The kernel
	// refuses others with EINVAL.
	FileRights = FSExecute | FSWriteFile | FSReadFile | FSTruncate | FSIoctlDev | FSResolveUnix
)

// Rights returns the Landlock rights for an access to a path, limited to those that the kernel
// handles.
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

// device reports whether a writable rule names a device file or a directory of them (/dev/pts),
// and so gets the right to ioctl(2). Terminals and /dev/kvm are useless without it. A wider
// tree that happens to contain a device does not get it.
func device(path string, mode fs.FileMode) bool {
	return mode&fs.ModeDevice != 0 ||
		mode.IsDir() && (path == "/dev" || strings.HasPrefix(path, "/dev/"))
}

// MergeRules sorts rules by path and joins those on the same path, with the first one's origin.
// It removes rules that add nothing to those above them: Landlock adds up the rights of the
// rules on all ancestors, and each rule costs two system calls.
func MergeRules(rules []PathRule) []PathRule {
	order := make([]int, len(rules)) // cheaper than moving rules
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(ComparePaths(rules[a].Path, rules[b].Path), a-b) })

	out := make([]PathRule, 0, len(rules))
	var open []PathRule // the directories above the current path, with the sum of rights there
	for i := 0; i < len(order); {
		r := rules[order[i]]
		for i++; i < len(order) && rules[order[i]].Path == r.Path; i++ {
			r.Rights |= rules[order[i]].Rights
			r.Part = r.Part && rules[order[i]].Part
		}
		for len(open) > 0 && !host.Within(r.Path, open[len(open)-1].Path) {
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

// ComparePaths sorts a directory right before what is below it. It compares bytes, with "/"
// before all others.
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
