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

// serveSockets is that process.
func serveSockets() int {
	if enforce.ServeKept() != nil {
		return exitFailed
	}
	return exitOK
}

// confine puts the plan on cmd. For a session that may be kept it holds on to
// the mediator of its sockets, to hand it over.
func (r *running) confine(plan *enforce.Plan, cmd *fork.Command) error {
	if !r.keep {
		return plan.Confine(cmd)
	}
	m, err := plan.ConfineMediated(cmd)
	if m != nil {
		r.mediator = m
		go m.Serve()
	}
	return err
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
