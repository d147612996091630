// Package apply makes what a layer has real, in the trees that it belongs to.
//
// It runs with the user's rights on names that a command chose, while other programs change the same
// directories. So it uses no path but those of a tree and of a layer: all else is relative to open
// directories, one name at a time or with openat2(2), below the tree, through no link and into no other mount.
//
// An apply has these steps. Until the third, nothing in a tree has changed but for the staging directory.
//
//  1. Stage: all that is new is written into one directory for each tree. It is in the layer's directory, where
//     no command can change what is staged for a protected file. What a change would replace or remove is
//     compared with what the layer knows of it. A file is not copied, but gets one more name there, unless a
//     process has it open for writing.
//  2. Sync (syncfs(2)), and a journal in the layer's directory that says how each file looks before and after.
//  3. Each change is one rename(2): with RENAME_NOREPLACE of what is new, a directory with all that is in it;
//     with RENAME_EXCHANGE of what replaces something; and what is removed moves to the staging directory. What
//     came out is then compared with the journal. If it is anything else, it is put back: a conflict.
//  4. Modes, times and attributes of directories.
//
// So what was there before is in the staging directory. Until the layer is thrown away, Undo brings it back.
//
// If nothing can be renamed between the layer's directory and a tree, as on another file system, the staging
// directory is .zsbx-try-ID in the tree, closed to other users. A command of another session that may write the tree
// can reach it. What it changes there is not put into place, neither by an apply nor by Undo: status change times
// tell, or, of what was there before if an apply was cut off, sizes and modification times. But if it has a file open
// for writing, it can still change that afterwards. Drop removes what is left in trees, and is called before
// Layer.Remove.
//
// What has changed in a tree since it was applied is not taken back. Status change times tell that, too.
//
// So the layer and the tree may have one file until the layer is thrown away. What changes it in the tree is seen
// in the layer, too.
//
// After a crash, or if it was stopped, the places of the files say what was done: one that has the inode of the new
// file is new.
package apply
