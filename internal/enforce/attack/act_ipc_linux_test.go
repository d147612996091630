package attack_test

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ipcActs use System V IPC and POSIX message queues.
func ipcActs() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"shm":     func(a []string) error { return attachShared(num(a[0])) },
		"shm-key": func(a []string) error { return byKey(unix.SYS_SHMGET, a[0], 0, 0) },
		"shm-rm":  func(a []string) error { return raw(unix.SYS_SHMCTL, uintptr(num(a[0])), unix.IPC_RMID) },
		"sem":     func(a []string) error { return raw(unix.SYS_SEMCTL, uintptr(num(a[0])), 0, semGetVal) },
		"sem-key": func(a []string) error { return byKey(unix.SYS_SEMGET, a[0], 0, 0) },
		"sem-op": func(a []string) error {
			up := struct{ num, op, flags int16 }{op: 1}
			return raw(unix.SYS_SEMOP, uintptr(num(a[0])), uintptr(unsafe.Pointer(&up)), 1)
		},
		"msg":     func(a []string) error { return receive(num(a[0])) },
		"msg-key": func(a []string) error { return byKey(unix.SYS_MSGGET, a[0], 0) },
		"mq":      func(a []string) error { return openQueue(a[0], unix.O_RDWR) },
		"mq-new":  func(a []string) error { return openQueue(a[0], unix.O_RDWR|unix.O_CREAT) },
		"own-ipc": func([]string) error { return ownIPC() },
	}
}

const semGetVal = 12 // GETVAL of linux/sem.h

// attachShared maps a shared memory segment for reading.
func attachShared(id int) error {
	mem, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
	if err != nil {
		return err
	}
	if mem[0] != 'x' {
		return fmt.Errorf("the segment contains %q", mem[0])
	}
	return unix.SysvShmDetach(mem)
}

// byKey finds an existing object.
func byKey(nr uintptr, key string, args ...uintptr) error {
	return raw(nr, append([]uintptr{uintptr(num(key))}, args...)...)
}

// receive takes a message.
func receive(id int) error {
	var msg struct {
		kind int
		text [8]byte
	}
	return raw(unix.SYS_MSGRCV, uintptr(id), uintptr(unsafe.Pointer(&msg)), uintptr(len(msg.text)), 0, unix.IPC_NOWAIT)
}

// openQueue opens a POSIX message queue.
func openQueue(name string, flags uintptr) error {
	p, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	err = raw(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(p)), flags, 0o600, 0)
	runtime.KeepAlive(p)
	return err
}

// ownIPC makes and uses objects by key and number, as fakeroot(1) and databases do.
func ownIPC() error {
	const create = unix.IPC_CREAT | unix.IPC_EXCL | 0o600
	key := 0x7a000000 | os.Getpid()
	shm, err := unix.SysvShmGet(key, 4096, create)
	if err != nil {
		return err
	}
	defer func() { _, _ = unix.SysvShmCtl(shm, unix.IPC_RMID, nil) }()
	mem, err := unix.SysvShmAttach(shm, 0, 0)
	if err != nil {
		return err
	}
	mem[0] = 'x'
	if err := attachShared(shm); err != nil {
		return err
	}
	if again, err := unix.SysvShmGet(key, 0, 0); err != nil || again != shm {
		return fmt.Errorf("found again: %d, %w", again, err)
	}
	for _, get := range [][]uintptr{{unix.SYS_SEMGET, uintptr(key), 1, create}, {unix.SYS_MSGGET, uintptr(key), create}} {
		id, _, errno := unix.Syscall6(get[0], get[1], get[2], append(get, 0)[3], 0, 0, 0)
		if errno != 0 {
			return errno
		}
		if get[0] == unix.SYS_SEMGET {
			err = then(func() error { return raw(unix.SYS_SEMCTL, id, 0, semGetVal) }, func() error { return raw(unix.SYS_SEMCTL, id, 0, unix.IPC_RMID) })
		} else {
			err = raw(unix.SYS_MSGCTL, id, unix.IPC_RMID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
