package cmd

import (
	"os"
	"os/exec"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
)

// serveSocketsArg makes zsbx the process that answers the socket calls of a
// kept session. It is no command: zsbx starts itself with it.
const serveSocketsArg = "--serve-sockets-of-a-kept-session"

// serveSockets is that process, where args ask for it.
func serveSockets(args []string) (status int, asked bool) {
	if len(args) != 1 || args[0] != serveSocketsArg {
		return 0, false
	}
	if err := enforce.ServeKept(); err != nil {
		return exitFailed, true
	}
	return exitOK, true
}

// confine puts the plan on cmd, and keeps the mediator of its sockets, which
// serves once the command runs: before, the command makes no call, and the start
// is not to wait for the threads that serving takes.
func (r *running) confine(plan *enforce.Plan, cmd *fork.Command) (err error) {
	r.mediator, err = plan.ConfineMediated(cmd)
	return err
}

// serve starts to answer, or gives up where the command was not started.
func (r *running) serve(started bool) {
	switch {
	case r.mediator == nil:
	case started:
		go func() {
			if err := r.mediator.Serve(); err != nil {
				r.a.say.warn("the command can't connect to anything any more: %v", err)
			}
		}()
	default:
		r.mediator.Close()
		r.mediator = nil
	}
}

// handOver lets another process answer the socket calls of what the command
// left running.
func (r *running) handOver() {
	if r.mediator == nil {
		return
	}
	err := r.mediator.HandOver(&exec.Cmd{Path: "/proc/self/exe", Args: []string{os.Args[0], serveSocketsArg}, Env: []string{}})
	if err != nil {
		r.a.say.warn("what the command left running can't connect to anything any more: %v", err)
	}
}
