package cmd

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
)

// runFlags are the flags of run.
type runFlags struct {
	policyFlags

	killAfter string
	track     string
	trackOnly bool
	keep      bool
	name      string
	idFile    string
	tty       bool
	exec      bool

	sandboxExec bool

	dryRun bool
	json   bool

	temp string // the private temporary directory, once there is one
}

func newRun(a *app) *cobra.Command {
	o := &runFlags{}
	c := &cobra.Command{
		Use:   "run [flags] [--] COMMAND [ARG...]",
		Short: "Run a command under a policy",
		Long: `Run COMMAND under the limits that the flags and the policy files ask for. When
this machine can't keep one of them, the command is not started, and the message
says why and what to type.

Flags stand before COMMAND: the first word that is no flag, or --, ends them.
Without any of --ro, --rox, --rw and --rw-noexec the working directory can be
read and executed, and only a private temporary directory can be written.
When COMMAND ends, what it left running is ended as well.`,
		Example: `  zsbx run --rw . -- cargo build
  zsbx run --rw . --no-net -- make test
  zsbx run --ro ~/data --connect-tcp 443 -- ./fetch.py
  zsbx run --rw . --deny '**/.env' --timeout 10m -- npm install`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return o.run(a, args) },
	}
	fs := c.Flags()
	fs.SetInterspersed(false)
	o.policyFlags.add(fs)
	fs.StringVar(&o.killAfter, "kill-after", defaultKillAfter.String(), "after --timeout, wait the time `D` before SIGKILL")
	fs.StringVar(&o.track, "track", cmp.Or(a.cfg.Track, "auto"), "how descendants are tracked, by `KIND`: auto, domain, cgroup or subtree")
	fs.BoolVar(&o.trackOnly, "track-only", false, "no limits at all; descendants are tracked all the same")
	fs.BoolVar(&o.keep, "keep", false, "leave background processes running when COMMAND ends")
	fs.StringVar(&o.name, "name", "", "give the session the name `NAME`")
	fs.StringVar(&o.idFile, "id-file", "", "write the session's id to `FILE`")
	fs.BoolVarP(&o.tty, "tty", "t", false, "run on a new pseudo-terminal")
	fs.BoolVar(&o.exec, "exec", false, "replace zsbx by COMMAND, with the same process id")
	fs.BoolVar(&o.sandboxExec, "sandbox-exec", false, "macOS: have sandbox-exec(1) put the limits on, unchecked")
	fs.BoolVar(&o.dryRun, "dry-run", false, "print what would be enforced, and exit")
	fs.BoolVar(&o.json, "json", false, "with --dry-run, print JSON")
	a.checkFlags = func() error {
		_, err := o.policy()
		return errors.Join(o.check(nil, true), err)
	}
	return c
}

// defaultKillAfter is how long a command may take to end after SIGTERM.
const defaultKillAfter = 5 * time.Second

// run is the whole way from a command line to an exit status.
func (o *runFlags) run(a *app, argv []string) error {
	closeInherited()
	if o.trackOnly {
		return o.runTracked(a, argv)
	}
	c, err := o.compose(a, argv)
	if err := errors.Join(o.check(argv, false), err); err != nil {
		return err
	}
	temp, err := o.makeTemp(a, c)
	if err != nil {
		return err
	}
	defer temp.remove()
	resolved, err := c.resolve()
	if err == nil {
		err = o.checkLimits(resolved.Limits)
	}
	if err == nil && !o.dryRun {
		if resolved, err = a.makeDirs(c, resolved); err == nil {
			makeLinks(resolved)
		}
	}
	if err == nil {
		err = a.judgeLinks(resolved)
	}
	if err != nil {
		return err
	}
	caps := enforce.Probe()
	if o.exec {
		caps = caps.InPlace(o.keep)
	}
	plan, err := o.plan(a, c, resolved, caps)
	if err != nil {
		return err
	}
	if plan.Seatbelt != nil {
		plan.Seatbelt.External = o.sandboxExec
	}
	if o.dryRun {
		return o.print(a, c, plan)
	}
	if err := o.acceptGaps(a, plan.Gaps); err != nil {
		return err
	}
	a.warnOf(resolved)
	file, err := lookPath(argv[0], commandEnv(resolved.Env, resolved.Dir))
	if err != nil {
		return err
	}
	o.temp = temp.path
	before := plan.Snapshot(&c.host)
	r, err := o.session(a, plan, job{
		file: file, argv: argv, env: resolved.Env, dir: resolved.Dir, limits: resolved.Limits, mayExec: mayExecIn(plan),
		replan: func(caps enforce.Caps) (*enforce.Plan, error) { return o.replan(a, c, plan, caps) },
	})
	a.reportChanges(before)
	if r != nil {
		if temp.keep, temp.over = r.kept, r.emptied; r.kept {
			a.say.warn("what was left running can still change files that programs outside act upon; zsbx will not report that")
		}
		if r.failed() {
			a.hintClosed(resolved)
			a.hintOwn(plan, argv)
		}
	}
	return err
}

// runTracked is run without any limits but those of time and output: the
// command is what it would be without zsbx, and tracked.
func (o *runFlags) runTracked(a *app, argv []string) error {
	c, err := o.compose(a, argv)
	if err := errors.Join(o.check(argv, false), err); err != nil {
		return err
	}
	if o.dryRun {
		return usageErr("--dry-run has nothing to print with --track-only")
	}
	if err := o.checkLimits(c.policy.Limits); err != nil {
		return err
	}
	if o.exec && !o.keep {
		if err := o.acceptGaps(a, []enforce.Gap{enforce.OrphansGap()}); err != nil {
			return err
		}
	}
	file, err := lookPath(argv[0], commandEnv(a.env, c.host.Dir))
	if err != nil {
		return err
	}
	_, err = o.session(a, nil, job{
		file: file, argv: argv, env: a.env, dir: c.host.Dir, limits: c.policy.Limits,
		mayExec: func(string) bool { return true },
	})
	return err
}

// session runs the job from the first process to the last. The plan is nil for
// a command that is only tracked.
func (o *runFlags) session(a *app, plan *enforce.Plan, j job) (*running, error) {
	s, err := o.begin(plan)
	if err != nil {
		return nil, err
	}
	r, err := o.start(a, s, plan, j)
	for caps, refused := plan.Refused(err); refused; caps, refused = plan.Refused(err) {
		if plan, err = j.replan(caps); err == nil {
			r, err = o.start(a, s, plan, j)
		}
	}
	if err != nil {
		o.discard(s)
		return nil, err
	}
	err = r.wait()
	return r, errors.Join(err, afterwards(r.close()))
}

// hintClosed tells of a project that begins above the working directory and
// is closed to the command, after the command has failed: it told of the file
// in its own words, but not what opens it.
func (a *app) hintClosed(r *policy.Resolved) {
	if file := r.ClosedProject(); file != "" {
		a.say.warn("%s was closed to the command", file)
		a.say.hint("--ro %s", shell.Quote(filepath.Dir(file)))
	}
}

// hintOwn tells of a file on the command line that the command did not see, after
// it has failed: "no such file" is all that it could say.
func (a *app) hintOwn(plan *enforce.Plan, argv []string) {
	for _, arg := range argv[1:] {
		if !filepath.IsAbs(arg) {
			continue
		}
		own := plan.Mounts.Own(filepath.Clean(arg))
		if _, err := os.Lstat(arg); own == "" || err != nil {
			continue
		}
		a.say.warn("%s was the command's own: %s was not there", own, shell.Quote(arg))
		a.say.hint("--ro %s", shell.Quote(arg))
		return
	}
}

// print is what --dry-run prints.
func (o *runFlags) print(a *app, c *composed, plan *enforce.Plan) error {
	if o.json {
		return a.printPlan(c, plan, "json")
	}
	return a.printPlan(c, plan, "text")
}
