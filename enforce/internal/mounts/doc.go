// Package mounts plans and writes the steps of the private mount namespace
// (mount_namespaces(7)) that a command gets: masks over what is denied, read-only
// what is protected and all that the policy does not let be written, and
// directories of its own: for shared memory, terminals, temporary files, processes
// and the user's home. It takes CAP_SYS_ADMIN or a user namespace
// (user_namespaces(7)), and Linux 5.12 for mount_setattr(2).
//
// It makes no root of its own, as containers have: what is mounted while the
// command runs comes into it. The plan decides whether there is a namespace.
package mounts
