// Package cmd is zsbx's command line: the only package that prints and exits.
//
// It turns flags and files into a policy, asks package policy what that means
// here and package enforce what of it the kernel can hold, and starts, watches
// and ends the command. It decides nothing about security: what is allowed is
// package policy's answer, what is held is package enforce's.
//
// Every command is built by a newX function that takes the app, the process as
// zsbx sees it, so that tests can run a command line without a process.
package cmd
