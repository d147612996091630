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

// serveApartArg makes it the process that answers those of a command which
// replaced zsbx.
const serveApartArg = "--serve-sockets-of-a-command-in-place"

// serveSockets is that process, where args ask for it.
func serveSockets(args []string) (status int, asked bool) {
	if len(args) != 1 {
		return 0, false
	}
	var err error
	switch args[0] {
	case serveSocketsArg:
		err = enforce.ServeKept()
	case serveApartArg:
		err = enforce.ServeApart()
	default:
		return 0, false
	}
	if err != nil {
		return exitFailed, true
	}
	return exitOK, true
}

// confine puts the plan on cmd, and keeps the mediator of its sockets, which
// serves once the command runs: before, the command makes no call, and the start
// is not to wait for the threads that serving takes.
func (r *running) confine(plan *enforce.Plan, cmd *fork.Command) (err error) {
	r.mediator, err = plan.ConfineMediated(cmd)
	if err == nil && r.inPlace && r.mediator != nil {
		err = r.mediator.StandBy(&fork.Command{Path: "/proc/self/exe", Args: []string{os.Args[0], serveApartArg}})
	}
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
