// Package layer has what commands wrote under a policy with writes = "try": it keeps layers in zsbx's state
// directory, and reads how each differs from the directories that the command would have written to.
//
// Each such directory is a tree: the lower directory of an overlay (overlayfs, with userxattr). What the command
// wrote is in the upper one, with the kernel's own marks for what was removed. All reading is relative to open
// directories, and follows no link.
package layer
