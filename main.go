// Command zsbx runs any command under kernel-enforced limits, and can always
// find and kill every process that the command left behind.
//
// The runtime need not read the limits of its control groups at each start: a
// program that waits for another one has no use for more processors.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0
package main

import (
	"os"

	"github.com/zsbx/zsbx/cmd"
)

func main() { os.Exit(cmd.Main(os.Args[1:])) }
