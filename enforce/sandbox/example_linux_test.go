package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/policy"
)

// What a command was refused, as data.
func ExampleRun() {
	mine, err := policy.Decode("example", []byte(`fs.deny = ["/etc/passwd"]`))
	if err != nil {
		fmt.Println(err)
		return
	}
	p := policy.Merge(policy.Baseline(policy.ThisSystem()), mine)
	result, err := sandbox.Run(context.Background(), p, sandbox.Options{
		Args:    []string{"cat", "/etc/passwd"},
		Explain: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range result.Denials.List {
		fmt.Println(d.Program, "may not", d.Operation, d.Path)
	}
	// Output: cat may not read /etc/passwd
}

// A terminal whose keys come from a reader, whose screen is a writer, and whose size changes.
func ExampleStart() {
	p := policy.Baseline(policy.ThisSystem())
	keyboard, keys := io.Pipe()
	var screen bytes.Buffer
	command, err := sandbox.Start(context.Background(), p, sandbox.Options{
		Args:   []string{"sh", "-c", "read line; stty size"},
		Stdin:  keyboard,
		Stdout: &screen,
		TTY:    true,
		Size:   sandbox.Size{Rows: 24, Columns: 80},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := command.Resize(sandbox.Size{Rows: 50, Columns: 132}); err != nil {
		fmt.Println(err)
	}
	_, _ = io.WriteString(keys, "\r")
	if _, err := command.Wait(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(strings.TrimSpace(screen.String()))
	// Output: 50 132
}

// A program that asks its user about hosts that the policy does not list.
func ExampleOptions() {
	mine, err := policy.Decode("example", []byte(`net.hosts = ["packages.example"]`))
	if err != nil {
		fmt.Println(err)
		return
	}
	p := policy.Merge(policy.Baseline(policy.ThisSystem()), mine)
	_, err = sandbox.Run(context.Background(), p, sandbox.Options{
		Args: []string{"npm", "ci"},
		Host: func(r sandbox.HostRequest) sandbox.HostAnswer {
			fmt.Printf("May %s connect to %s at port %d? ", r.Program, r.Host, r.Port)
			var answer string
			_, _ = fmt.Scanln(&answer)
			if answer == "yes" {
				return sandbox.AllowHost
			}
			return sandbox.RefuseHost
		},
	})
	if err != nil {
		fmt.Println(err)
	}
}

// Which promises of a policy this machine can't keep, without running anything.
func ExampleGaps() {
	gaps, err := sandbox.Gaps(policy.Baseline(policy.ThisSystem()), sandbox.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, g := range gaps {
		fmt.Printf("%s: %s: %s\n", g.Name, g.Promise, g.Why)
	}
}

// What a command wrote is reviewed, and made real if nothing of it needs a look.
func ExampleLayer() {
	mine, err := policy.Decode("example", []byte("fs.rw = [\".\"]\nfs.writes = \"try\""))
	if err != nil {
		fmt.Println(err)
		return
	}
	p := policy.Merge(policy.Baseline(policy.ThisSystem()), mine)
	result, err := sandbox.Run(context.Background(), p, sandbox.Options{Args: []string{"npm", "ci"}})
	if err != nil {
		fmt.Println(err)
	}
	layer := result.Layer
	if layer == nil {
		return // nothing was written
	}
	for _, c := range layer.Changes {
		for _, why := range c.Look {
			fmt.Printf("%s %s: %s\n", c.Op, c.Path, why)
			_ = layer.Diff(os.Stdout, c.Path)
		}
	}
	if !layer.Clean {
		return // it is kept: OpenLayer(layer.ID) finds it again, and so does zsbx try
	}
	left, err := layer.Apply(sandbox.LayerOptions{})
	if err == nil && left == nil {
		err = layer.Discard()
	}
	if err != nil {
		fmt.Println(err)
	}
}
