package seatbelt_test

// Release is a major version of macOS.
type Release int

// The releases that differ in the operations they know.
const (
	MacOS14 Release = 14
	MacOS15 Release = 15
	MacOS26 Release = 26

	namesTIOCSTI = MacOS15 // 14.2 lacks the name
)

// operation is one row of the table of operations.
type operation struct {
	parent  string  // decides if no rule for this operation does
	allowed bool    // allowed by default with (version 1), whatever "default" says; parent is not asked
	class   class   // what its filters are about
	since   Release // 0: all
}

// class says what an operation acts on.
type class uint16

const (
	onFile class = 1 << iota
	onNetwork
	onMach
	onIPC
	onSysctl
	onProcess
	onIOKit
	onSocket
	onFcntl
	onNothing
)

func child(parent string, c class) operation { return operation{parent: parent, class: c} }
func open(c class) operation                 { return operation{allowed: true, class: c} }

// operations is the model's table. Names and parents are facts about macOS, from what others
// read and measured.
var operations = map[string]operation{
	"default": {class: onNothing},

	"file*":                 child("default", onFile),
	"file-chroot":           child("file*", onFile),
	"file-ioctl":            child("file*", onFile),
	"file-mknod":            child("file*", onFile),
	"file-mount":            child("file*", onFile),
	"file-unmount":          child("file*", onFile),
	"file-read*":            child("file*", onFile),
	"file-read-data":        child("file-read*", onFile),
	"file-read-metadata":    child("file-read*", onFile),
	"file-read-xattr":       child("file-read*", onFile),
	"file-write*":           child("file*", onFile),
	"file-write-acl":        child("file-write*", onFile),
	"file-write-create":     child("file-write*", onFile),
	"file-write-data":       child("file-write*", onFile),
	"file-write-finderinfo": child("file-write*", onFile),
	"file-write-flags":      child("file-write*", onFile),
	"file-write-mode":       child("file-write*", onFile),
	"file-write-owner":      child("file-write*", onFile),
	"file-write-setugid":    child("file*", onFile),
	"file-write-times":      child("file-write*", onFile),
	"file-write-unlink":     child("file-write*", onFile),
	"file-write-xattr":      child("file-write*", onFile),
	"file-clone":            open(onFile),
	"file-link":             open(onFile),
	"file-map-executable":   open(onFile),
	"file-test-existence":   open(onFile),
	"file-graft":            {allowed: true, class: onFile, since: MacOS26},
	"file-ungraft":          {allowed: true, class: onFile, since: MacOS26},
	"fs-snapshot*":          child("default", onFile),
	"fs-snapshot-create":    child("fs-snapshot*", onFile),
	"fs-snapshot-mount":     open(onFile),

	"process*":                   child("default", onFile),
	"process-exec*":              child("process*", onFile),
	"process-exec":               child("process-exec*", onFile),
	"process-exec-interpreter":   child("process-exec*", onFile),
	"process-fork":               child("process*", onNothing),
	"process-info*":              open(onProcess),
	"process-info-codesignature": open(onProcess),
	"process-info-pidinfo":       child("process-info*", onProcess),
	"process-info-listpids":      child("process-info*", onProcess),
	"signal":                     child("default", onProcess),

	"network*":         child("default", onNetwork),
	"network-inbound":  child("network*", onNetwork),
	"network-bind":     child("network-inbound", onNetwork),
	"network-outbound": child("network*", onNetwork),
	"system*":          child("default", onNothing),
	"system-socket":    child("system*", onSocket),
	"socket-ioctl":     open(onSocket),
	"system-fcntl":     open(onFcntl),

	"mach*":                    child("default", onMach),
	"mach-lookup":              child("mach*", onMach),
	"mach-register":            child("mach*", onMach),
	"mach-priv*":               child("mach*", onProcess),
	"mach-priv-task-port":      child("mach-priv*", onProcess),
	"mach-cross-domain-lookup": open(onMach),

	"ipc*":                       child("default", onIPC),
	"ipc-posix*":                 child("ipc*", onIPC),
	"ipc-posix-sem":              child("ipc-posix*", onIPC),
	"ipc-posix-shm*":             child("ipc-posix*", onIPC),
	"ipc-posix-shm-read*":        child("ipc-posix-shm*", onIPC),
	"ipc-posix-shm-read-data":    child("ipc-posix-shm-read*", onIPC),
	"ipc-posix-shm-write*":       child("ipc-posix-shm*", onIPC),
	"ipc-posix-shm-write-create": child("ipc-posix-shm-write*", onIPC),
	"ipc-posix-shm-write-data":   child("ipc-posix-shm-write*", onIPC),
	"ipc-posix-shm-write-unlink": child("ipc-posix-shm-write*", onIPC),
	"sysctl*":                    child("default", onSysctl),
	"sysctl-read":                child("sysctl*", onSysctl),
	"sysctl-write":               child("sysctl*", onSysctl),

	"iokit*":                   child("default", onIOKit),
	"iokit-open":               child("iokit*", onIOKit),
	"iokit-get-properties":     open(onIOKit),
	"nvram*":                   open(onNothing),
	"nvram-get":                child("nvram*", onNothing),
	"appleevent-send":          child("default", onNothing),
	"job-creation":             child("default", onFile),
	"lsopen":                   child("default", onNothing),
	"pseudo-tty":               child("default", onNothing),
	"user-preference-read":     child("default", onNothing),
	"darwin-notification-post": open(onNothing),
	"dynamic-code-generation":  open(onNothing),
	"system-privilege":         open(onNothing),
	"syscall-unix":             open(onNothing),
}
