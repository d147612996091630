// Package safepath makes and opens files and directories without following symbolic
// links, which a command may have put into their paths meanwhile. Linux has openat2(2)
// with RESOLVE_NO_SYMLINKS for that, and macOS O_NOFOLLOW_ANY of open(2). Paths must be
// canonical. The package does not decide which paths may be used.
package safepath
