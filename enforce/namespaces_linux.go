package enforce

import (
	"errors"
	"fmt"
	"os"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/internal/mounts"
)

// probeNamespaces makes the namespace in a process that then executes what
// can't be executed: it goes as far as the start of a command would.
func probeNamespaces(caps *Caps) {
	if !caps.MountNS || caps.Err != nil {
		return
	}
	p := &Plan{Caps: *caps, Mounts: &mounts.Plan{UserNS: !caps.Privileged, IPC: caps.IPCReason == "", Writable: []string{}}}
	c := &fork.Command{Path: "/", Args: []string{"/"}, Dir: "/", OwnMemory: true}
	c.Steps = p.Mounts.Steps(c.Memory(), os.Geteuid(), os.Getegid(), -1, nil)
	_, err := fork.Start(c)
	var se *fork.StepError
	if errors.As(err, &se) && se.Stage == fork.StageExec {
		return
	}
	without, refused := p.Refused(err)
	if !refused && fork.ShortageOf(err) != nil {
		caps.Err = fmt.Errorf("trying a mount namespace: %w", err)
		return
	}
	if !refused {
		without.MountNS, without.MountReason = false, "a process to try it in could not be started"
	}
	*caps = without
	probeNamespaces(caps)
}
