// Package protect finds files through which the command could make a later program outside run
// its code: zsbx's own files, and those that git, editors, agents and shells act upon. Where
// they can't be covered by a mount, it compares them before and after the command.
//
// Package mounts makes them read-only. Package protect looks at a limited number of
// directories. It leaves out what builds run, since the user decides to run a build.
package protect
