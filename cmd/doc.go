// Package cmd is zsbx's command line: the only package that prints and exits.
//
// It turns flags and files into a policy, asks package resolve what that means here
// and package enforce what the kernel can enforce, and starts, watches and ends the
// command. It decides nothing about security: package resolve decides what is allowed,
// and package enforce what is enforced.
//
// A newX function builds each command. It takes the app, the process as zsbx sees it,
// so that tests can run a command line without a process.
package cmd
