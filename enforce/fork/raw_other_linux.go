//go:build linux && !amd64 && !arm64

package fork

import "golang.org/x/sys/unix"

// rawClone is not to be had on machines without the assembly.
func rawClone(flags, top, run uintptr, j *image, r role) int { return -int(unix.ENOSYS) }
