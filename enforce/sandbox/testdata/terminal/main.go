// Command terminal runs the command in its arguments on a pseudo-terminal that this program owns,
// as the terminal in an editor's window does. What the command prints goes to standard output,
// what is read from standard input is typed, and a new size of standard input's terminal is passed
// on.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/policy"
)

func main() {
	sandbox.Init()
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	os.Exit(status)
}

func run(args []string) (status int, err error) {
	screen, theirs, err := pty.Open()
	if err != nil {
		return 125, err
	}
	defer screen.Close()
	resize := func() { _ = pty.InheritSize(os.Stdin, screen) } // an editor has pty.Setsize(screen, …)
	resize()

	here := policy.Rule{Path: ".", Access: policy.Read | policy.Write | policy.Exec}
	mine := &policy.Policy{FS: policy.FS{Rules: []policy.Rule{here}}}
	p := policy.Merge(policy.Baseline(policy.ThisSystem()), mine)
	command, err := sandbox.Start(context.Background(), p, sandbox.Options{
		Args:        args,
		Stdin:       theirs,
		Stdout:      theirs,
		Stderr:      theirs,
		Controlling: true,
	})
	theirs.Close() // the command has it
	if err != nil {
		return 125, err
	}

	if old, err := term.MakeRaw(int(os.Stdin.Fd())); err == nil {
		defer term.Restore(int(os.Stdin.Fd()), old)
	}
	sizes := make(chan os.Signal, 1)
	signal.Notify(sizes, syscall.SIGWINCH)
	go func() {
		for range sizes {
			resize()
		}
	}()
	go io.Copy(screen, os.Stdin)
	shown := make(chan struct{})
	go func() {
		_, _ = io.Copy(os.Stdout, screen) // ends with EIO once nobody has the terminal open
		close(shown)
	}()
	result, err := command.Wait()
	<-shown
	return result.ExitCode(), err
}
