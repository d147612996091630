// Package safepath makes and opens files and directories by paths in which a
// command may meanwhile have put symbolic links: no link is followed, on Linux by
// openat2(2) with RESOLVE_NO_SYMLINKS and on macOS by O_NOFOLLOW_ANY of open(2).
// Paths have to be canonical. It does not decide which paths may be used.
package safepath
