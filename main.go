// Go's runtime reads its control group's share of the processors at every start, asks
// for it anew from then on, and names its memory for /proc/PID/maps. That takes a
// fifteenth of a short run, and zsbx hardly computes: https://go.dev/doc/godebug.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0
//go:debug decoratemappings=0

// Command zsbx runs any command under kernel-enforced limits, and can always
// find and kill every process that the command left behind.
package main

import (
	"os"

	"github.com/zsbx/zsbx/cmd"
)

func main() { os.Exit(cmd.Main(os.Args[1:])) }
