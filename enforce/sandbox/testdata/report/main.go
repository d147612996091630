// Command report runs the command in its arguments without network, for at most a time and an
// amount of output, and prints what it was refused.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/policy"
)

// rules are in the language of policy files (docs/policy.md).
const rules = `
fs.rw = ["."]
net.allow = false
limits.max_output = "10M"
`

func main() {
	sandbox.Init()
	timeout := flag.Duration("timeout", 10*time.Minute, "the command's time limit")
	flag.Parse()
	mine, err := policy.Decode("report", []byte(rules))
	if err != nil {
		fail(err)
	}
	mine.Limits.Timeout.Value = int64(*timeout)
	p := policy.Merge(policy.Baseline(policy.ThisSystem()), mine)
	result, err := sandbox.Run(context.Background(), p, sandbox.Options{
		Args:  flag.Args(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Explain: true,
	})
	if limit, ok := errors.AsType[*sandbox.LimitError](err); ok {
		fmt.Fprintln(os.Stderr, "it reached its", limit.Limit)
	} else if err != nil {
		fail(err)
	}
	// As text for people. Denials.List is the same as data.
	fmt.Fprint(os.Stderr, result.Denials.Text())
	os.Exit(result.ExitCode())
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(125)
}
