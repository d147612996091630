package enforce

import "github.com/zsbx/zsbx/enforce/fork"

// Confine makes the command start under the plan. On Linux it opens the
// Landlock ruleset and appends the system calls that put the restrictions on
// to c.Steps, to be made in the child between fork and exec; what was opened
// is closed by c.Cleanup. The order of the steps is: capabilities,
// no_new_privs, landlock_restrict_self(2), seccomp(2). Steps that the caller
// wants to make unrestricted have to be in c.Steps before.
//
// Where the plan has a Mediation, a goroutine of the calling process answers
// from the start of the command until the last process of its session has
// ended; ConfineMediated leaves that to the caller.
//
// On macOS it writes the profile for the command's terminal and the session of
// ForSession into c.Sandbox; programs that start such commands have to call
// SandboxMain.
//
// Confine does not look at the gaps: ask Err first. On Linux the ruleset is
// filled by c.Prepare; the command is not started, and the error is a
// *PathError, when a path of the policy is no longer what was resolved.
func (p *Plan) Confine(c *fork.Command) error {
	_, err := p.confine(c, true)
	return err
}

// ConfineMediated is Confine for callers that answer the command's calls
// themselves: they let Serve run in a goroutine of its own before or after they
// start the command, and Close the mediator if they don't start it. The Mediator
// is nil when the plan needs none.
func (p *Plan) ConfineMediated(c *fork.Command) (*Mediator, error) {
	return p.confine(c, p.watched != nil)
}

// Start confines c and starts it, for programs that need no session.
func (p *Plan) Start(c *fork.Command) (*fork.Process, error) {
	if err := p.Confine(c); err != nil {
		return nil, err
	}
	proc, err := fork.Start(c)
	return proc, ExplainStart(err)
}

// SandboxArg is the argument by which a program that starts confined commands
// is told to be their helper on macOS.
const SandboxArg = fork.SandboxArg

// SandboxMain is that helper. Such a program has to begin with
//
//	if len(os.Args) == 2 && os.Args[1] == enforce.SandboxArg {
//		os.Exit(enforce.SandboxMain(nil))
//	}
//
// The arguments after SandboxArg are args; there are none. It does not return
// when all goes well, for it becomes the command. On Linux it does nothing and
// returns 125.
func SandboxMain(args []string) int {
	if len(args) > 0 {
		return 125 // nobody called it as a helper
	}
	return fork.SandboxMain()
}
