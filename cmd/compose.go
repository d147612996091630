package cmd

import (
	"errors"
	"fmt"

	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/compose"
	"github.com/zsbx/zsbx/policy/shell"
)

// composed is the policy that flags and files make, and the machine that it is for.
type composed struct {
	*compose.Composed
	host policy.Host
}

// compose adds up what flags and files ask for. argv is the command, as far as
// presets are detected from it. The error joins all that is wrong with both.
func (o *policyFlags) compose(argv []string) (*composed, error) { return o.composeFor("", argv) }

// composeFor is compose for another system; "" is this one.
func (o *policyFlags) composeFor(os string, argv []string) (*composed, error) {
	flags, flagErr := o.policy()
	host, err := o.thisHost()
	if err != nil {
		return nil, errors.Join(flagErr, err)
	}
	if os != "" {
		host.OS = os
	}
	c, err := compose.Compose(&host, &compose.Sources{
		Asked: flags, Files: o.files, More: o.more, Args: argv,
		NoBaseline: o.noBaseline, NoAutoPresets: o.noAutoPresets, SharedTmp: o.sharedTmp, UserTemp: sandbox.UserTemp(),
	})
	if err := errors.Join(flagErr, o.composeErr(err)); err != nil {
		return nil, err
	}
	return &composed{c, host}, nil
}

// composeErr gives what is wrong with policies a code and a hint, each part of it.
func (o *policyFlags) composeErr(err error) error {
	var errs []error
	for _, e := range leaves(err) {
		var untrusted *compose.UntrustedError
		var mistake *compose.Error
		var inPolicy *policy.Error
		switch {
		case errors.As(e, &untrusted):
			e = &failure{code: codeUntrusted, status: exitFailed, hint: o.trustCommand(), err: e}
		case errors.As(e, &mistake):
			e = &failure{code: codePolicy, status: exitFailed, hint: mistake.Hint, err: e}
		case !errors.As(e, &inPolicy):
			e = coded(codePolicy, e)
		}
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// trustCommand is what to type to see what the project's policies ask for.
func (o *policyFlags) trustCommand() string {
	if o.chdir != "" {
		return "zsbx check -C " + shell.Quote(o.chdir) + " --trust"
	}
	return "zsbx check --trust"
}

// thisHost is the machine as the policy sees it, with the working directory
// that the command will have.
func (o *policyFlags) thisHost() (policy.Host, error) {
	h, err := policy.HostIn(o.chdir)
	if err == nil {
		return h, nil
	}
	f := &failure{code: codeUsage, status: exitFailed, err: err}
	if o.chdir == "" {
		f.hint = `cd "$HOME"`
	} else {
		f.err = fmt.Errorf("--chdir %s: %w", shell.Quote(o.chdir), err)
	}
	return h, f
}

// options are the flags that a plan depends on, as package sandbox takes them.
func (o *policyFlags) options(c *composed) sandbox.Options {
	return sandbox.Options{
		Host: &c.host, Asked: c.Asked, PolicyFiles: c.Files, Repository: c.Root,
		NoTempDir: o.sharedTmp || o.noBaseline,
		AllowGaps: o.allowGaps, Strict: o.strict,
	}
}
