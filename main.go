// Go's runtime would read its control group's share of the processors at every start:
// two files of proc(5) and two of the group, for a program that hardly computes.
//
//go:debug containermaxprocs=0

// Command zsbx runs any command under kernel-enforced limits, and can always
// find and kill every process that the command left behind.
package main

import (
	"os"

	"github.com/zsbx/zsbx/cmd"
)

func main() { os.Exit(cmd.Main(os.Args[1:])) }
