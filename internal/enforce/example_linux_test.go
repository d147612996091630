package enforce_test

import (
	"fmt"
	"os"
	"syscall"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// A program that needs no session can confine and start a command itself. Usually
// resolve.Policy makes the Resolved; here it is a literal.
func ExamplePlan_Confine() {
	r := &resolve.Resolved{OS: "linux", Dir: "/", Net: resolve.ResolvedNet{Mode: resolve.NetNone}}
	for _, dir := range []string{"/usr", "/etc"} {
		var st syscall.Stat_t
		if err := syscall.Lstat(dir, &st); err != nil {
			fmt.Println(err)
			return
		}
		r.Paths = append(r.Paths, resolve.Path{
			Path: dir, Access: policy.Read | policy.Exec, Mode: os.ModeDir,
			ID: host.FileID{Dev: st.Dev, Ino: st.Ino},
		})
	}

	plan := enforce.NewPlan(r, enforce.Probe(), nil, enforce.Options{})
	if err := plan.Err(nil, false); err != nil {
		fmt.Println(err) // says what this machine can't enforce
		return
	}
	c := &fork.Command{
		Path: "/usr/bin/head", Args: []string{"head", "-c", "4", "/proc/version"},
		Files: []*os.File{nil, os.Stdout, nil},
	}
	m, err := plan.Confine(c)
	if err != nil {
		fmt.Println(err)
		return
	}
	if m != nil { // the command's calls must be answered
		go m.Serve()
	}
	p, err := fork.Start(c)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	for {
		ev, err := p.Next()
		if err != nil {
			fmt.Println(err)
			return
		}
		if ev.Kind == fork.Exited {
			fmt.Println("exit status", ev.Status.ExitStatus())
			return
		}
	}
	// Output: exit status 1
}
