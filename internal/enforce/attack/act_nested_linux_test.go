package attack_test

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// nested confines a program from inside a confined process. The program may read the first
// argument and tries the second.
func nested(a []string) error {
	r := &resolve.Resolved{OS: "linux", Net: resolve.ResolvedNet{Mode: resolve.NetOpen}}
	for _, dir := range []string{"/usr", a[0]} {
		var st unix.Stat_t
		if err := unix.Lstat(dir, &st); err != nil {
			return err
		}
		r.Paths = append(r.Paths, resolve.Path{Path: dir, Access: policy.Read | policy.Exec, Mode: os.ModeDir,
			ID: host.FileID{Dev: st.Dev, Ino: st.Ino}})
	}
	plan := enforce.NewPlan(r, enforce.Probe(), nil, enforce.Options{})
	if err := plan.Err(nil, false); err != nil {
		return err
	}
	p, err := startUnder(plan, &fork.Command{Path: "/usr/bin/head", Args: []string{"head", "-c1", a[1]}, Files: []*os.File{nil, os.Stderr}})
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	defer p.Close()
	for {
		ev, err := p.Next()
		if err != nil {
			return err
		}
		if ev.Kind == fork.Exited {
			if s := ev.Status.ExitStatus(); s != 0 {
				return syscall.EACCES
			}
			return nil
		}
	}
}
