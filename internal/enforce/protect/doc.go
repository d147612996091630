// Package protect finds files through which the command could make a later program outside run
// the command's code: zsbx's own files, and those that git, editors, agents and shells run or
// trust. Package mounts makes them read-only. Files that no mount can cover are compared before
// and after the command.
//
// Package protect looks at a limited number of directories. It leaves out what builds run, since
// the user decides to run a build.
package protect
