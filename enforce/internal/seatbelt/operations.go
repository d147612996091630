package seatbelt

import "github.com/zsbx/zsbx/enforce/fingerprint"

// The releases of macOS on which an operation's name was seen to be bound.
type release uint8

const (
	macOS14 release = 1 << iota
	macOS15
	macOS26

	everywhere = macOS14 | macOS15 | macOS26
)

// Attested reports whether every supported release knows the operation.
func Attested(op string) bool { return OperationNames[op] == everywhere }

// OperationNames are the operations that a profile of zsbx names, each with
// the releases for which there is evidence that the compiler knows it:
// profiles of others that run there, or measurements. A name that a release
// does not know makes its compiler refuse the whole profile, so one without
// evidence for all three is written below a (defined? ...) guard.
var OperationNames = map[string]release{
	"default": everywhere,

	"appleevent-send": everywhere,
	"job-creation":    everywhere,
	"lsopen":          everywhere,

	"process-exec*":              everywhere,
	"process-exec":               everywhere,
	"process-fork":               everywhere,
	"process-info*":              everywhere,
	"process-info-codesignature": macOS26,
	"signal":                     everywhere,

	"file-read*":            everywhere,
	"file-read-data":        everywhere,
	"file-read-metadata":    everywhere,
	"file-read-xattr":       everywhere,
	"file-write*":           everywhere,
	"file-write-acl":        everywhere,
	"file-write-create":     everywhere,
	"file-write-data":       everywhere,
	"file-write-finderinfo": everywhere,
	"file-write-flags":      everywhere,
	"file-write-mode":       everywhere,
	"file-write-owner":      everywhere,
	"file-write-setugid":    everywhere,
	"file-write-times":      everywhere,
	"file-write-unlink":     everywhere,
	"file-write-xattr":      everywhere,
	"file-clone":            everywhere,
	"file-ioctl":            everywhere,
	"file-link":             everywhere,
	"file-map-executable":   everywhere,
	"file-graft":            macOS26,
	"file-ungraft":          macOS26,
	"fs-snapshot-mount":     macOS26,

	"ipc-posix-sem":              everywhere,
	"ipc-posix-shm-read-data":    everywhere,
	"ipc-posix-shm-write-create": everywhere,
	"ipc-posix-shm-write-data":   everywhere,
	"ipc-posix-shm-write-unlink": everywhere,

	"iokit-get-properties":     everywhere,
	"mach-cross-domain-lookup": macOS26,
	"mach-lookup":              everywhere,
	"nvram*":                   everywhere,
	"pseudo-tty":               everywhere,
	"sysctl-read":              everywhere,
	"sysctl-write":             everywhere,
	"system-socket":            everywhere,

	"network-bind":     everywhere,
	"network-inbound":  everywhere,
	"network-outbound": everywhere,
}

func ReadOps() []string  { return fingerprint.ReadOps() }
func WriteOps() []string { return fingerprint.WriteOps() }

func execOps() []string {
	return []string{"process-exec*", "process-exec", "file-map-executable"}
}

// AccessOps are all operations on a path that a policy can allow.
func AccessOps() []string {
	ops := append(ReadOps(), WriteOps()...)
	ops = append(ops, execOps()...)
	return append(ops, "file-clone", "file-ioctl", "network-outbound")
}
