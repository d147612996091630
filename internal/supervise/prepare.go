package supervise

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/zsbx/zsbx/internal/compose"
	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/guard"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/safepath"
	"github.com/zsbx/zsbx/internal/tempdir"
	"github.com/zsbx/zsbx/internal/track"
	"github.com/zsbx/zsbx/policy"
)

// prepared is a command before its session begins: what the policy means here, and
// the plan.
type prepared struct {
	o      *Options
	warn   func(Warning)
	policy *policy.Policy
	host   host.Host
	temp   *tempdir.Dir

	resolved *resolve.Resolved // nil for a command that is only tracked
	plan     *enforce.Plan     // like resolved
	limits   policy.Limits
	bounds   track.Limits // those of limits that a control group enforces
	log      *auditor     // nil where the policy asks for no audit log
}

// Plan returns what would be enforced, without running anything. It has all gaps,
// accepted or not. For the host of another system it is what that would enforce.
func Plan(p *policy.Policy, o Options) (*enforce.Plan, error) {
	c, err := o.begin(p)
	if err != nil {
		return nil, err
	}
	err = c.planWith(func() error {
		c.resolved.AssumeMade(func(p *resolve.Path) bool {
			return c.planted(p.Path, p.Links) == nil && safepath.MayMakeDir(p.Path, p.Rule.Origin.BuiltIn())
		})
		return nil
	})
	if err == nil && o.Trial {
		err = c.tryLayers()
	}
	if e := c.temp.Remove(); err == nil {
		err = e
	}
	return c.plan, err
}

// planWith makes a plan from the policy, for the files that exist after make.
func (c *prepared) planWith(make func() error) error {
	err := c.resolve()
	if err == nil {
		err = make()
	}
	if err != nil {
		return err
	}
	if err := c.openLog(); err != nil {
		return err
	}
	return c.replan(c.o.caps(c.host.OS))
}

// caps returns what this machine can do, or what another system is assumed to do.
func (o *Options) caps(os string) enforce.Caps {
	var caps enforce.Caps
	if o.Caps != nil {
		caps = *o.Caps
	} else {
		caps = enforce.Probe()
		if caps.OS != os {
			return enforce.Assume(os)
		}
	}
	if o.InPlace {
		caps = caps.InPlace(o.Keep)
	}
	return caps
}

// begin looks at the machine and makes the private temporary directory.
func (o *Options) begin(p *policy.Policy) (*prepared, error) {
	if o.Explain && (o.Keep || o.TrackOnly || o.InPlace) {
		return nil, errors.New("what a command is refused can't be recorded when it replaces this process, " +
			"is only tracked, or leaves something running")
	}
	if err := o.checkControlling(); err != nil {
		return nil, err
	}
	c := &prepared{o: o, policy: cmp.Or(p, &policy.Policy{}), warn: o.warner()}
	if o.Host != nil {
		c.host = *o.Host
	} else {
		var err error
		c.host, err = host.ThisHost()
		if err != nil {
			return nil, err
		}
	}
	if err := compose.CheckVariables(&c.host); err != nil {
		return nil, err
	}
	if c.host.OS != policy.ThisSystem() {
		c.host = host.Foreign(c.host)
	}
	if err := guard.Check(c.policy, &c.host, o.Args); err != nil {
		if !o.TrackOnly {
			err = errors.Join(err, c.resolve())
		}
		return nil, err
	}
	if o.NoTempDir || o.TrackOnly {
		return c, nil
	}
	var err error
	c.temp, err = tempdir.Make(c.host.Getenv("TMPDIR"))
	if err != nil {
		const hint = "export TMPDIR=$(mktemp -d /var/tmp/zsbx.XXXXXX)\n--shared-tmp"
		return nil, &Error{Code: CodeFailed, Hint: hint, Err: err}
	}
	c.host.TempDir = c.temp.Path()
	return c, nil
}

// checkControlling refuses a controlling terminal that is none.
func (o *Options) checkControlling() error {
	if !o.Controlling {
		return nil
	}
	if o.TTY {
		err := errors.New("a command with a terminal from zsbx can't have another controlling terminal")
		return &Error{Code: CodeUsage, Err: err}
	}
	f, ok := o.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		err := errors.New("the command's standard input is to be its controlling terminal, but is no terminal")
		return &Error{Code: CodeUsage, Err: err}
	}
	return nil
}

// prepare makes a plan from the policy, and decides whether the command may run under it.
func (c *prepared) prepare() error {
	if c.o.TrackOnly {
		c.limits = c.policy.LimitsOn(c.host.OS)
		if err := c.openLog(); err != nil {
			return err
		}
		if err := c.o.checkLimits(c.limits); err != nil || !c.o.InPlace || c.o.Keep {
			return err
		}
		return c.o.acceptGaps(c.warn, nil, []enforce.Gap{enforce.OrphansGap()})
	}
	err := c.planWith(c.makeMissing)
	if err == nil {
		err = c.o.acceptGaps(c.warn, c.plan, c.plan.Gaps)
	}
	if err != nil {
		return err
	}
	c.warnOf(nil)
	return nil
}

// warnOf passes on the plan's warnings, except for those of an earlier plan.
func (c *prepared) warnOf(before *enforce.Plan) {
	var said policy.Errors
	if before != nil {
		said = before.Warnings(c.o.Args)
	}
	for _, w := range c.plan.Warnings(c.o.Args) {
		if !slices.ContainsFunc(said, func(s *Error) bool { return s.Error() == w.Error() }) {
			c.warn(Warning{Text: w.Error(), Hint: w.Hint})
		}
	}
}

// resolve finds out what the policy means on this machine, refuses links that lead out of
// the project, and checks the limits.
func (c *prepared) resolve() error {
	host, short := enforce.Noted(&c.host)
	r, err := resolve.Policy(c.policy, *host)
	if unknown := short(); unknown != nil {
		return unknown
	}
	if err == nil {
		err = r.CheckLinks()
	}
	c.resolved = r
	c.limits = c.policy.LimitsOn(c.host.OS)
	return errors.Join(coded(err), c.o.checkLimits(c.limits))
}

// checkLimits refuses limits that could not be enforced. A command that replaces this
// process has no keeper. Nothing counts output to a terminal, or output after this
// process has ended. A command that is only tracked could lift the limits of its
// control group.
func (o *Options) checkLimits(l policy.Limits) error {
	var all []error
	for _, limit := range l.All() {
		flag := "--" + strings.ReplaceAll(limit.Name, "_", "-")
		output := limit.Name == "max_output"
		for _, with := range []struct {
			is     bool
			option string
		}{
			{o.InPlace, "exec"}, {o.Keep && output, "keep"}, {o.TTY && output, "tty"},
			{o.TrackOnly && !output && limit.Name != "timeout", "track-only"}, // it needs a control group
		} {
			if !with.is {
				continue
			}
			e := &Error{Code: CodeUsage, Err: fmt.Errorf("--%s and %s can't be used together", with.option, flag)}
			if where := limit.Origin.String(); where != flag {
				e.Hint = flag + " 0"
				e.Err = fmt.Errorf("%w: %s", e.Err, where)
			}
			all = append(all, e)
		}
	}
	return errors.Join(all...)
}

// replan decides what is enforced on a machine that can do what caps say.
func (c *prepared) replan(caps enforce.Caps) error {
	host := c.host.Remembering()
	opts := c.zsbxFiles(host, caps.MountNS)
	opts.Accepted = c.o.AllowGaps
	opts.Repository = c.o.Repository
	opts.Explain = c.o.Explain
	opts.Model = c.o.Model
	opts.AskHost = c.o.AskHost
	opts.ObserveHosts = c.o.ObserveHosts
	opts.Try = c.layers()
	opts.NoLimits = c.bound()
	opts.NoProxy = c.o.noProxy()
	c.plan = enforce.NewPlan(c.resolved, caps, host, opts)
	if c.plan.Seatbelt != nil {
		c.plan.Seatbelt.External = c.o.SandboxExec
	}
	if why := c.plan.Explains(); c.o.Explain && why != "" && c.plan.Caps.Err == nil {
		return &Error{Code: CodeFailed, Err: fmt.Errorf("what the command is refused can't be recorded here: %s", why)}
	}
	return c.plan.Caps.Err
}

// bound notes the limits that need a control group. If this machine can't enforce them,
// it notes none, and returns why.
func (c *prepared) bound() string {
	c.bounds = track.Limits{Memory: c.limits.Memory.Value, Pids: c.limits.Pids.Value, CPU: c.limits.CPU.Value}
	if err := track.ProbeLimits(c.bounds); err != nil {
		c.bounds = track.Limits{}
		return "a control group (version 2) is needed: " + err.Error()
	}
	return ""
}

// planAgain plans with what the machine turned out to be able to do, and decides whether
// the command may start with the new gaps.
func (c *prepared) planAgain(caps enforce.Caps) error {
	before := c.plan
	if err := c.replan(caps); err != nil {
		return err
	}
	known := func(g enforce.Gap) bool { return slices.Contains(before.Gaps, g) }
	more := slices.DeleteFunc(slices.Clone(c.plan.Gaps), known)
	err := c.o.acceptGaps(c.warn, c.plan, more)
	if err == nil {
		c.warnOf(before)
	}
	return err
}
