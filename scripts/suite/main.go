// Command suite runs go test with its own arguments and shows what go test shows. Its last line
// says how many tests ran, and how many were skipped for lack of which package.
//
// For all packages, "./...", it starts those first whose tests take longest, and runs the tests of
// one package more at the same time than the machine has processors, because many tests wait.
//
// With -skipped as the first argument it also says of each skipped test why.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

func main() {
	args := os.Args[1:]
	list := len(args) > 0 && args[0] == "-skipped"
	if list {
		args = args[1:]
	}
	packages, err := os.ReadFile("scripts/ci-packages.txt")
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite: start it in the top directory:", err)
		os.Exit(2)
	}
	s := newSuite(string(packages), installed)
	goTest := exec.Command("go", append([]string{"test", "-json"}, longestFirst(args, runtime.NumCPU())...)...)
	goTest.Stderr = os.Stderr
	out, err := goTest.StdoutPipe()
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(2)
	}
	if err := goTest.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(2)
	}
	s.read(out, os.Stdout)
	failed := goTest.Wait()
	if list {
		s.list(os.Stdout)
	}
	fmt.Println(s.summary(failed == nil))
	if failed != nil {
		os.Exit(1)
	}
}

// installed reports whether a program can be started, or a file exists.
func installed(program string) bool {
	if filepath.IsAbs(program) {
		_, err := os.Stat(program)
		return err == nil
	}
	_, err := exec.LookPath(program)
	return err == nil
}

// read handles the events of go test -json, and writes to w what go test would print without it.
func (s *suite) read(events io.Reader, w io.Writer) {
	r := bufio.NewReader(events)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				e = event{Action: "output", Output: string(line)}
			}
			io.WriteString(w, s.handle(e))
		}
		if err != nil {
			return
		}
	}
}
