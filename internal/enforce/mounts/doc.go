// Package mounts plans a command's private mount namespace (mount_namespaces(7)) and writes the
// steps that make it. The namespace has masks over denied files. Protected files and all that
// the policy does not make writable are read-only. Directories for shared memory, terminals,
// temporary files, processes and the user's home can be private. This needs CAP_SYS_ADMIN or a
// user namespace (user_namespaces(7)), and Linux 5.12 for mount_setattr(2).
//
// The namespace has no new root as a container has, so file systems that are mounted outside
// later appear in it. The plan decides whether there is a namespace.
package mounts
