// Command probe is what scripts/bench runs beside zsbx and in it: probe NAME ARG...
package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// probes are the programs that it can be, by name.
var probes = map[string]func(args []string){
	"forkwait": func(args []string) {
		c := exec.Command(args[0], args[1:]...)
		c.Stdin = os.Stdin
		c.Stdout = os.Stdout
		c.Stderr = os.Stderr
		if err := c.Run(); err != nil {
			log.Fatal(err)
		}
	},
	// Prints the nanoseconds for one open, and a close if it succeeds.
	"opens": func(args []string) {
		const n = 1000
		start := time.Now()
		for range n {
			if fd, err := syscall.Open(args[0], syscall.O_RDONLY, 0); err == nil {
				syscall.Close(fd)
			}
		}
		fmt.Print(time.Since(start).Nanoseconds() / n)
	},
}

func main() { probes[os.Args[1]](os.Args[2:]) }
