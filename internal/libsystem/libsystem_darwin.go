package libsystem

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

//go:cgo_import_dynamic libc_sandbox_init sandbox_init "/usr/lib/libSystem.B.dylib"
//go:cgo_import_dynamic libc_sandbox_free_error sandbox_free_error "/usr/lib/libSystem.B.dylib"
//go:cgo_import_dynamic libc_sandbox_check sandbox_check "/usr/lib/libSystem.B.dylib"
//go:cgo_import_dynamic libc_proc_listpids proc_listpids "/usr/lib/libSystem.B.dylib"
//go:cgo_import_dynamic libc_fcntl fcntl "/usr/lib/libSystem.B.dylib"
//go:cgo_import_dynamic libc_confstr confstr "/usr/lib/libSystem.B.dylib"

// The addresses of the entries, set in libsystem_darwin.s.
var (
	sandboxInitAddr      uintptr
	sandboxFreeErrorAddr uintptr
	sandboxCheckAddr     uintptr
	procListpidsAddr     uintptr
	fcntlAddr            uintptr
	confstrAddr          uintptr
)

// syscall3 and syscall6 are the functions by which golang.org/x/sys calls libSystem. Pointers
// must be converted to numbers within the call (unsafe.Pointer).
//
//go:linkname syscall3 syscall.syscall
func syscall3(fn, a1, a2, a3 uintptr) (r1, r2 uintptr, err syscall.Errno)

//go:linkname syscall6 syscall.syscall6
func syscall6(fn, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err syscall.Errno)

// SandboxInit puts the calling process, with all its threads and all that it will start, under
// a profile in Seatbelt's language for ever. It returns an error, and changes nothing, if the
// compiler rejects the profile or the process is already in a sandbox.
func SandboxInit(profile string) error {
	p, err := syscall.BytePtrFromString(profile)
	if err != nil {
		return fmt.Errorf("sandbox_init: the profile has a zero byte: %w", err)
	}
	message := new(*byte)
	r, _, errno := syscall6(sandboxInitAddr, uintptr(unsafe.Pointer(p)), 0, uintptr(unsafe.Pointer(message)), 0, 0, 0)
	runtime.KeepAlive(p)
	runtime.KeepAlive(message)
	if int32(r) == 0 {
		return nil
	}
	why := errno.Error()
	if *message != nil {
		why = unix.BytePtrToString(*message)
		syscall6(sandboxFreeErrorAddr, uintptr(unsafe.Pointer(*message)), 0, 0, 0, 0, 0)
	}
	return errors.New("sandbox_init: " + why)
}

// SandboxCheck asks whether the profile of process pid allows operation op on arg. It returns
// Allowed, Denied, or NoAnswer for anything else. With op "" and FilterNone it returns Denied
// if the process is in a sandbox at all. A process without a profile is allowed everything. One
// that has ended is denied everything.
func SandboxCheck(pid int, op string, filter Filter, arg string) int {
	var o, a *byte
	var err error
	if op != "" {
		o, err = syscall.BytePtrFromString(op)
		if err != nil {
			return NoAnswer
		}
	}
	if filter != FilterNone {
		a, err = syscall.BytePtrFromString(arg)
		if err != nil {
			return NoAnswer
		}
		filter |= noReport
	}
	r, _, _ := syscall6(sandboxCheckAddr, uintptr(pid), uintptr(unsafe.Pointer(o)),
		uintptr(filter), uintptr(unsafe.Pointer(a)), 0, 0)
	runtime.KeepAlive(o)
	runtime.KeepAlive(a)
	switch v := int32(r); v {
	case Allowed, Denied:
		return int(v)
	}
	return NoAnswer
}

// PathOf returns the path of an open file (fcntl(2), F_GETPATH, which writes at most MAXPATHLEN
// bytes). The error is an errno.
func PathOf(fd int) (string, error) {
	const getPath, maxPath = 50, 1024 // sys/fcntl.h, sys/syslimits.h
	buf := make([]byte, maxPath)
	r, _, errno := syscall3(fcntlAddr, uintptr(fd), getPath, uintptr(unsafe.Pointer(&buf[0])))
	runtime.KeepAlive(buf)
	if int32(r) == -1 {
		return "", errno
	}
	return unix.ByteSliceToString(buf), nil
}

// UserTemp returns the user's own directory for temporary files, with a slash at its end, or ""
// (confstr(3), _CS_DARWIN_USER_TEMP_DIR).
func UserTemp() string {
	const userTemp, maxPath = 65537, 1024 // unistd.h
	buf := make([]byte, maxPath)
	r, _, _ := syscall3(confstrAddr, userTemp, uintptr(unsafe.Pointer(&buf[0])), maxPath)
	runtime.KeepAlive(buf)
	if r == 0 || r > maxPath {
		return ""
	}
	return unix.ByteSliceToString(buf)
}

// The types of proc_listpids (sys/proc_info.h).
const (
	allPids = 1 // PROC_ALL_PIDS
	uidOnly = 4 // PROC_UID_ONLY: the effective user
)

// ListPids returns the pids of all processes, or if uid is not negative, of those with that
// effective user. The list is of one moment, since the kernel copies it under one lock.
func ListPids(uid int) ([]int, error) {
	kind := uintptr(allPids)
	arg := uintptr(0)
	if uid >= 0 {
		kind = uidOnly
		arg = uintptr(uid)
	}
	for room := 1024; ; room *= 2 {
		buf := make([]int32, room)
		size := uintptr(room) * unsafe.Sizeof(buf[0])
		r, _, _ := syscall6(procListpidsAddr, kind, arg, uintptr(unsafe.Pointer(&buf[0])), size, 0, 0)
		runtime.KeepAlive(buf)
		n := int(int32(r)) / int(unsafe.Sizeof(buf[0]))
		if n <= 0 {
			// libproc returns 0 for an error, and Go reads errno only after -1.
			return nil, errors.New("proc_listpids lists nothing")
		}
		if n == room { // there may be more
			continue
		}
		pids := make([]int, 0, n)
		for _, p := range buf[:n] {
			pids = append(pids, int(p))
		}
		return pids, nil
	}
}
