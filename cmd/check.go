package cmd

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/policy/guard"
	"github.com/zsbx/zsbx/policy/units"
)

type checkFlags struct {
	policyFlags

	questions []question
	trust     string // of --trust: trustShow, or the hash of what is to be trusted
	selfTest  bool
}

func newCheck(a *app) *cobra.Command {
	o := &checkFlags{policyFlags: policyFlags{mistakes: &a.mistakes}}
	c := command("check", func(args []string) error { return o.run(a, args) })
	fs := c.Flags()
	open := enforce.Act{Op: enforce.ActOpen, Flags: enforce.ActRead, Inside: true}
	o.ask(fs, "read", "--ro", open, "may `PATH` be read?")
	open.Flags = enforce.ActWrite | enforce.ActCreat
	o.ask(fs, "write", "--rw", open, "may `PATH` be written?")
	o.ask(fs, "exec", "--rox", enforce.Act{Op: enforce.ActExec, Flags: enforce.ActRead, Inside: true}, "may `PATH` be executed?")
	o.ask(fs, "connect", "--unix", enforce.Act{Op: enforce.ActConnect}, "may `HOST:PORT`, or the Unix socket PATH, be connected to?")
	o.flag(fs, "trust", "boolfunc", "", "show what the project's policies ask for; --trust=SHA256 trusts the one with that content", func(s string) error {
		o.trust = strings.ToLower(s)
		return nil
	})
	fs.Lookup("trust").NoOptDefVal = trustShow
	fs.BoolVar(&o.selfTest, "self-test", false, "attack a sandboxed process, harmlessly, and print what was refused")
	fs.BoolVar(&a.say.json, "json", false, "print JSON")
	o.policyFlags.add(a, fs)
	return c
}

func (o *checkFlags) check(argv []string) error {
	o.failIf(o.trust != "" && len(argv) > 0, "--trust can't be used with a command; it takes its value with =: --trust=SHA256")
	o.apart("trust", "read", "write", "exec", "connect")
	return o.policyFlags.check()
}

func (o *checkFlags) run(a *app, argv []string) error {
	flagErr := o.check(argv)
	if o.trust != "" && flagErr == nil {
		return o.trustProject(a)
	}
	c, err := o.compose("", argv, flagErr)
	if err != nil {
		return err
	}
	opts := o.options(c)
	caps := enforce.Probe()
	enforce.ProbeNamespaces(&caps)
	opts.Caps = &caps
	plan, err := sandbox.Plan(c.Policy, opts)
	if err != nil {
		return err
	}
	if why := plan.Unnamed(); why != "" && !a.say.json {
		a.say.warn("names can't be resolved: %s", why)
		a.say.hint("%s", enforce.NamesHint)
	}
	a.tellStillWritable(plan)
	if len(o.questions) > 0 || len(argv) > 0 {
		return o.answer(a, plan, argv, guard.Check(c.Policy, c.Host, argv))
	}
	return o.machine(a, plan, c.Files)
}

// parseTarget reads what --connect asks about: HOST:PORT, [HOST]:PORT, of which the
// port counts, or the path of a socket.
func parseTarget(s string) (port uint16, path string, err error) {
	if strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~") || strings.HasPrefix(s, ".") {
		return 0, s, nil
	}
	i := strings.LastIndexByte(s, ':')
	if i <= 0 {
		return 0, "", errors.New("must be HOST:PORT or the path of a socket")
	}
	port, err = units.ParsePort(s[i+1:])
	return port, "", err
}
