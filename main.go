// Command zsbx runs any command under kernel-enforced limits, and can always
// find and kill every process that the command left behind.
package main

import (
	"os"

	"github.com/zsbx/zsbx/cmd"
)

func main() { os.Exit(cmd.Main(os.Args[1:])) }
