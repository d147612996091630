package enforce

import "github.com/zsbx/zsbx/enforce/fork"

// Confine makes the command start under the plan. On Linux it opens the
// Landlock ruleset and appends the system calls that put the restrictions on
// to c.Steps, to be made in the child between fork and exec; what was opened
// is closed by c.Cleanup. The order of the steps is: capabilities,
// no_new_privs, landlock_restrict_self(2), seccomp(2). Steps that the caller
// wants to make unrestricted have to be in c.Steps before.
//
// The Mediator is nil unless the plan has a Mediation. The caller lets its Serve
// run in a goroutine of its own, before or after the command is started, and
// Closes it if the command is not started.
//
// On macOS it writes the profile for the command's terminal and the session of
// ForSession into c.Sandbox; programs that start such commands have to call
// fork.SandboxMain.
//
// Confine does not look at the gaps: ask Err first. On Linux the ruleset is
// filled by c.Commit; the command is not started when a path of the policy is no
// longer what was resolved.
func (p *Plan) Confine(c *fork.Command) (*Mediator, error) { return p.confine(c) }
