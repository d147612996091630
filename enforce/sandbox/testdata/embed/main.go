// Command embed runs the command in its arguments, which may write to the working
// directory and to nothing else that is outside of it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/policy"
)

func main() {
	sandbox.Init()
	here := policy.Rule{Path: ".", Access: policy.Read | policy.Write | policy.Exec}
	p := policy.Merge(policy.Baseline(policy.ThisSystem()), &policy.Policy{FS: policy.FS{Rules: []policy.Rule{here}}})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	result, err := sandbox.Run(ctx, p, sandbox.Options{
		Args:  os.Args[1:],
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Warn: func(w sandbox.Warning) { fmt.Fprintln(os.Stderr, "warning:", w.Text, w.Gaps) },
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(125)
	}
	fmt.Fprintf(os.Stderr, "ended %d processes, nothing is left: %v\n", result.Report.Killed, result.Report.Proof)
	os.Exit(result.ExitCode())
}
