// Package cmd is zsbx's command line: the only package that prints and exits.
// It decides nothing about security.
package cmd

// Main runs zsbx with args, without the program's name, and returns the exit
// status.
func Main(args []string) int { return 125 }
