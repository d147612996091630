// Without these settings, Go's runtime watches the limit of processors and names its
// memory, and zsbx would start later.

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
