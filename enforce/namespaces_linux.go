package enforce

import (
	"errors"
	"os"
	"strings"

	"github.com/zsbx/zsbx/enforce/fork"
)

// probeNamespaces makes the namespace in a process that then executes what
// can't be executed: it goes as far as the start of a command would.
func probeNamespaces(caps *Caps) {
	if !caps.MountNS {
		return
	}
	p := &Plan{Caps: *caps, Mounts: &MountPlan{UserNS: !caps.Privileged, Writable: []string{}}}
	steps := p.Mounts.steps(os.Geteuid(), os.Getegid())
	_, err := fork.Start(&fork.Command{Path: "/", Args: []string{"/"}, Dir: "/", Steps: steps, OwnMemory: true})
	var se *fork.StepError
	switch {
	case errors.As(err, &se) && se.Stage == "exec":
	case errors.As(err, &se) && strings.HasPrefix(se.Name, mountsPrefix):
		caps.MountNS, caps.MountReason = false, p.MountsRefused(err)
	default:
		caps.MountNS, caps.MountReason = false, "a process to try it in could not be started"
	}
}
