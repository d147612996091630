// Package layer has what commands wrote under a policy with writes = "try": it keeps layers in zsbx's state
// directory, and reads how each differs from the directories that the command would have written to.
//
// A layer has a tree for each such directory, which is the lower directory of an overlay (overlayfs, with
// userxattr). What the command wrote is in the upper one, with the kernel's own marks for what is removed.
// All reading is relative to open directories, one name at a time, and follows no link.
package layer
