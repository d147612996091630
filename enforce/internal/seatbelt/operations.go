package seatbelt

import "github.com/zsbx/zsbx/enforce/fingerprint"

// The operations of an access. A denial names all of them, wildcards and leaves: see
// Profile.

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
