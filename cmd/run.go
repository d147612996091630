package cmd

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/internal/compose"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/track"
	"github.com/zsbx/zsbx/policy"
)

type runFlags struct {
	policyFlags

	explainFile string
	dryRun      bool
	apply       string // what becomes of a layer: applyAsk, applyClean, or else it is kept
}

func newRun(a *app) *cobra.Command {
	o := &runFlags{}
	c := command("run", func(args []string) error { return o.run(a, args) })
	fs := c.Flags()
	o.add(a, c)
	fs.BoolVar(&o.opts.Keep, "keep", false, "leave background processes running when COMMAND ends")
	fs.BoolVar(&o.opts.TrackOnly, "track-only", false, "confine nothing, only track descendants")
	fs.BoolVar(&o.opts.InPlace, "exec", false, "replace zsbx with COMMAND, which keeps the process id")
	fs.BoolVar(&o.opts.Explain, "explain", false, "afterwards report what COMMAND was refused, as zsbx why does")
	fs.BoolVar(&o.dryRun, "dry-run", false, "print what would be enforced, and exit")
	fs.Lookup("json").Usage = "with --dry-run or --explain, print JSON"
	return c
}

// add adds the flags that run and why share.
func (o *runFlags) add(a *app, c *cobra.Command) {
	fs := c.Flags()
	o.policyFlags.add(a, fs)
	o.opts.KillAfter = defaultKillAfter
	o.opts.Tracker = track.Kind(cmp.Or(a.cfg["track"], "auto"))
	o.duration(fs, &o.opts.KillAfter, "kill-after", "after --timeout, wait the time `D` before SIGKILL")
	o.choice(fs, (*string)(&o.opts.Tracker), "track", trackers,
		"track descendants by `KIND`: auto, domain, cgroup or subtree; on macOS auto or fingerprint")
	o.text(fs, &o.opts.Name, "name", "give the session the name `NAME`")
	o.text(fs, &o.opts.IDFile, "id-file", "write the session's id to `FILE`")
	fs.BoolVarP(&o.opts.TTY, "tty", "t", false, "run on a new pseudo-terminal")
	fs.BoolVar(&o.opts.SandboxExec, "sandbox-exec", false,
		"macOS: have sandbox-exec(1) apply the limits, without a check that it did")
	o.text(fs, &o.explainFile, "explain-file", "write what COMMAND was refused to `FILE`, as JSON")
	o.text(fs, &o.opts.HostsLog, "hosts-log",
		"append a line of JSON to `FILE` for each event of a connection that --allow-host allows or refuses")
	fs.BoolVar(&a.say.json, "json", false, "print JSON on standard error")
}

// trackers are the values of --track, on Linux and macOS.
var trackers = []string{"auto", "domain", "fingerprint", "cgroup", "subtree"}

// defaultKillAfter is how long a command may take to end after SIGTERM.
const defaultKillAfter = 5 * time.Second

// run reads the flags, runs the command, and reports how that went.
func (o *runFlags) run(a *app, argv []string) error {
	words := &patient{w: a.say.w}
	a.say.w = words
	c, err := o.compose("", argv, o.check(a, argv))
	if err != nil {
		return err
	}
	if o.opts.HostsLog != "" && c.Policy.On(policy.ThisSystem()).Net.Hosts == nil {
		return usageHint("", "--hosts-log: nothing to write, as the policy does not limit the network to hosts")
	}
	opts := o.runOptions(a, c, argv)
	switch {
	case o.dryRun:
		return errors.Join(a.printPlan(c, opts, argv, "text"), words.unsaid())
	case o.opts.InPlace:
		o.warnOfLate(a, argv)
		return a.forShell(supervise.Exec(c.Policy, opts), argv)
	case o.needsFront():
		out, err := supervise.Front(a.args)
		if err != nil {
			return err
		}
		return exit(out)
	}
	o.warnOfLate(a, argv)
	command, err := supervise.Start(context.Background(), c.Policy, opts)
	if err != nil {
		return a.forShell(err, argv)
	}
	words.started()
	return o.finish(a, command, argv, words)
}

// runOptions returns the options of a run on the standard streams of zsbx.
func (o *runFlags) runOptions(a *app, c *compose.Composed, argv []string) supervise.Options {
	opts := o.options(c)
	opts.Args = argv
	opts.Stdin = os.Stdin
	opts.Stdout = os.Stdout
	opts.Stderr = os.Stderr
	opts.Accept = o.acceptor(a)
	opts.Warn = a.warning
	opts.Job = true
	return opts
}

// needsFront reports whether this process must start another one that runs the command: the
// other one stays with the processes that --keep leaves, when this one has ended.
func (o *runFlags) needsFront() bool {
	keeps := o.opts.Keep && !o.opts.TrackOnly && runtime.GOOS == "linux"
	return keeps && !supervise.InBackground()
}

// finish waits for the command and reports how it went.
func (o *runFlags) finish(a *app, command *supervise.Command, argv []string, words *patient) error {
	res, err := command.Wait()
	if o.opts.Keep { // what it has sent may be on its way when it has ended
		a.left = command
	}
	a.tellOf(command.Plan(), &res, argv)
	a.told(command)
	switch {
	case o.opts.Explain:
		err = errors.Join(err, o.tellWhy(a, command, &res))
	case res.Failed && command.Plan() != nil && !o.opts.Keep:
		o.afterFailure(a, command.Plan(), argv, &res)
	}
	return o.afterTry(a, command, &res, afterRun(&res, errors.Join(err, words.unsaid())))
}

func (o *runFlags) check(a *app, argv []string) error {
	if len(argv) == 0 && !o.dryRun {
		o.errs = append(o.errs, usageHint("zsbx "+o.fs.Name()+" --help", "no command given"))
	}
	if o.explainFile != "" {
		o.opts.Explain = true
		// The file is written at the end: a mistake in its name would be found too late.
		_, err := os.Stat(filepath.Dir(o.explainFile))
		o.failIf(err != nil, "--explain-file: %v", err)
	}
	if o.opts.HostsLog != "" {
		_, err := os.Stat(filepath.Dir(o.opts.HostsLog))
		o.failIf(err != nil, "--hosts-log: %v", err)
	}
	if o.opts.Name != "" {
		err := track.CheckName(o.opts.Name)
		o.failIf(err != nil, "--name: %v", err)
	}
	o.excludes("exec", "tty", "sandbox-exec")
	for _, explain := range []string{"explain", "explain-file"} {
		o.excludes(explain, "exec", "keep", "track-only", "dry-run")
	}
	o.excludes("track-only", "sandbox-exec", "dry-run", "ro", "rox", "rw", "rw-noexec", "deny", "preset", "policy",
		"net", "no-net", "connect-tcp", "bind-tcp", "allow-host", "allow-private-host", "deny-host", "hosts-log",
		"unix", "sign", "env", "clean-env", "private-home", "private-pids", "try", "try-all", "try-protected",
		"no-baseline", "strict")
	saysJSON := o.dryRun || o.opts.Explain || o.apply != ""
	o.failIf(a.say.json && !saysJSON, "--json can only be used with --dry-run and --explain")
	o.failIf(o.opts.SandboxExec && runtime.GOOS != "darwin", "--sandbox-exec can only be used on macOS")
	return o.policyFlags.check()
}

// limiting are flags that few other programs have.
var limiting = []string{
	"--ro", "--rox", "--rw", "--rw-noexec", "--deny", "--no-net", "--connect-tcp", "--bind-tcp", "--allow-host",
	"--allow-private-host", "--deny-host", "--private-home", "--private-pids", "--try",
}

// warnOfLate warns about flags of zsbx that come after the command, and so go to the
// command. A "--" shows that the user means it.
func (o *runFlags) warnOfLate(a *app, argv []string) {
	i := slices.IndexFunc(argv, func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return arg == "--" || slices.Contains(limiting, name)
	})
	if i < 1 || argv[i] == "--" || o.fs.ArgsLenAtDash() == 0 {
		return
	}
	a.say.warn("%s is passed to %s: flags of zsbx go before the command", argv[i], shell.Quote(argv[0]))
	if late := newRun(&app{}); late.ParseFlags(argv[i:]) == nil && late.Flags().NArg() == 0 {
		a.say.hint("%s", a.retyped(argv, argv[i:], quoteArgs(argv[:i])))
	}
}

// retyped returns the command line with more flags, and with command in place of argv.
func (a *app) retyped(argv, more []string, command string) string {
	flags := slices.Clone(a.args[:len(a.args)-len(argv)])
	if flags[len(flags)-1] == "--" {
		flags = flags[:len(flags)-1]
	}
	return "zsbx " + quoteArgs(withoutValues(append(flags, more...))) + " -- " + command
}

var (
	// shBuiltins are words that every shell knows, and that are no programs.
	shBuiltins = []string{
		"cd", "export", "alias", "ulimit", "umask", "set", "unset", "eval", "exec", "if", "for", "while", "!",
	}
	// bashBuiltins are words that bash knows. sh may not know them.
	bashBuiltins = []string{"source", "time", "[[", "declare", "shopt", "pushd", "popd"}
)

// forShell adds a hint to err if the command is a line for a shell, or the value of a
// flag that was left out.
func (a *app) forShell(err error, argv []string) error {
	e, ok := errors.AsType[*supervise.Error](err)
	if !ok {
		return err
	}
	hint := ""
	switch e.Code {
	case supervise.CodeCannotRun:
		hint = a.hintForDot(argv)
	case supervise.CodeNotFound:
		hint = a.hintForWord(argv)
	}
	if hint != "" {
		e.Hint = hint
	}
	return err
}

// hintForDot returns what to type if the command is ".", or "". Either --rw was left out before it,
// or it is the word of a shell that reads a file.
func (a *app) hintForDot(argv []string) string {
	if argv[0] != "." || len(argv) < 2 {
		return ""
	}
	command := withoutDashes(argv[1:])
	switch {
	case len(command) > 0 && a.finds(command[0]):
		return a.retyped(argv, []string{"--rw", "."}, quoteArgs(command))
	case strings.Contains(argv[1], "/"):
		return a.retyped(argv, nil, "sh -c "+shellLine(argv))
	}
	return ""
}

// hintForWord returns what to type if the first word of the command is not a program, but a word
// of a shell or a value after a flag that takes none, or "".
func (a *app) hintForWord(argv []string) string {
	before := max(len(a.args)-len(argv)-1, 0)
	switch {
	case argv[0] == "none" && a.args[before] == "--net":
		command := withoutDashes(argv[1:])
		if len(command) == 0 {
			return ""
		}
		withoutNet := &app{args: slices.Delete(slices.Clone(a.args), before, before+1)}
		return withoutNet.retyped(argv, []string{"--no-net"}, quoteArgs(command))
	case slices.Contains(bashBuiltins, argv[0]) && a.finds("bash"):
		return a.retyped(argv, nil, "bash -c "+shellLine(argv))
	case strings.ContainsAny(argv[0], " =;&|<>") || slices.Contains(shBuiltins, argv[0]):
		return a.retyped(argv, nil, "sh -c "+shellLine(argv))
	}
	return ""
}

// withoutDashes returns a command line without the "--" that it may begin with.
func withoutDashes(argv []string) []string {
	if len(argv) > 0 && argv[0] == "--" {
		return argv[1:]
	}
	return argv
}

// shellLine returns a command line as one word for sh -c. Its first word is left as it is,
// because it may be a whole line.
func shellLine(argv []string) string {
	return shell.Quote(strings.TrimSpace(argv[0] + " " + quoteArgs(argv[1:])))
}

// finds reports whether a word is a program.
func (a *app) finds(word string) bool {
	_, err := supervise.LookPath(word, a.env, "")
	return err == nil
}
