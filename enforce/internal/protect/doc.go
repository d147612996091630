// Package protect finds the files by which a later program, run outside and by
// another's hand, would do what the command wrote: zsbx's own files, what git,
// editors, agents and shells act upon. It compares them before and after the
// command where nothing can be put over them.
//
// It finds and compares; package mounts holds. It looks at a bounded number of
// directories, and not at what builds run: that is the user's to run.
package protect
