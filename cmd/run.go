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

	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/track"
)

type runFlags struct {
	policyFlags

	explainFile string
	dryRun      bool
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
	o.opts.KillAfter, o.opts.Tracker = defaultKillAfter, track.Kind(cmp.Or(a.cfg["track"], "auto"))
	o.duration(fs, &o.opts.KillAfter, "kill-after", "after --timeout, wait the time `D` before SIGKILL")
	o.choice(fs, (*string)(&o.opts.Tracker), "track", trackers, "track descendants by `KIND`: auto, domain, cgroup or subtree; on macOS auto or fingerprint")
	o.text(fs, &o.opts.Name, "name", "give the session the name `NAME`")
	o.text(fs, &o.opts.IDFile, "id-file", "write the session's id to `FILE`")
	fs.BoolVarP(&o.opts.TTY, "tty", "t", false, "run on a new pseudo-terminal")
	fs.BoolVar(&o.opts.SandboxExec, "sandbox-exec", false, "macOS: have sandbox-exec(1) apply the limits, without a check that it did")
	o.text(fs, &o.explainFile, "explain-file", "write what COMMAND was refused to `FILE`, as JSON")
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
	opts := o.options(c)
	opts.Args, opts.Stdin, opts.Stdout, opts.Stderr = argv, os.Stdin, os.Stdout, os.Stderr
	opts.Accept, opts.Warn, opts.Job = o.acceptor(a), a.warning, true
	switch {
	case o.dryRun:
		return errors.Join(a.printPlan(c, opts, argv, "text"), words.unsaid())
	case o.opts.InPlace:
		o.warnOfLate(a, argv)
		return a.forShell(supervise.Exec(c.Policy, opts), argv)
	case o.opts.Keep && !o.opts.TrackOnly && runtime.GOOS == "linux" && !supervise.InBackground():
		out, err := supervise.Front(a.args) // the process behind it stays with what is kept
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
	res, err := command.Wait()
	if res.Report.Kept {
		a.left = command
	}
	a.tellOf(command.Plan(), &res, argv)
	a.told(command)
	switch {
	case opts.Explain:
		err = errors.Join(err, o.tellWhy(a, command, &res))
	case res.Failed && command.Plan() != nil && !o.opts.Keep:
		o.afterFailure(a, command.Plan(), argv, res.ExitCode())
	}
	return afterRun(&res, errors.Join(err, words.unsaid()))
}

func (o *runFlags) check(a *app, argv []string) error {
	if len(argv) == 0 && !o.dryRun {
		o.errs = append(o.errs, usageHint("zsbx "+o.fs.Name()+" --help", "no command given"))
	}
	if o.explainFile != "" {
		o.opts.Explain = true
		_, err := os.Stat(filepath.Dir(o.explainFile)) // it is written at the end, when the command's work is done
		o.failIf(err != nil, "--explain-file: %v", err)
	}
	if o.opts.Name != "" {
		err := track.CheckName(o.opts.Name)
		o.failIf(err != nil, "--name: %v", err)
	}
	o.apart("exec", "tty", "sandbox-exec")
	for _, explain := range []string{"explain", "explain-file"} {
		o.apart(explain, "exec", "keep", "track-only", "dry-run")
	}
	o.apart("track-only", "sandbox-exec", "dry-run", "ro", "rox", "rw", "rw-noexec", "deny", "preset", "policy",
		"net", "no-net", "connect-tcp", "bind-tcp", "unix", "sign", "env", "clean-env", "private-home", "private-pids", "no-baseline", "strict")
	o.failIf(a.say.json && !o.dryRun && !o.opts.Explain, "--json can only be used with --dry-run and --explain")
	o.failIf(o.opts.SandboxExec && runtime.GOOS != "darwin", "--sandbox-exec can only be used on macOS")
	return o.policyFlags.check()
}

// limiting are flags that few other programs have.
var limiting = []string{"--ro", "--rox", "--rw", "--rw-noexec", "--deny", "--no-net", "--connect-tcp", "--bind-tcp", "--private-home", "--private-pids"}

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

// forShell adds a hint to err if the command is a line for a shell, or the value of a
// flag that was left out.
func (a *app) forShell(err error, argv []string) error {
	builtins := []string{"cd", "export", "alias", "ulimit", "umask", "set", "unset", "eval", "exec", "if", "for", "while", "!"}
	bash := []string{"source", "time", "[[", "declare", "shopt", "pushd", "popd"} // sh may not have them
	e, ok := errors.AsType[*supervise.Error](err)
	if !ok {
		return err
	}
	line := strings.TrimSpace(argv[0] + " " + quoteArgs(argv[1:]))
	switch {
	case e.Code == supervise.CodeCannotRun && len(argv) > 1 && argv[0] == ".": // --rw was left out, or it is the shell's
		command := argv[1:]
		if command[0] == "--" {
			command = command[1:]
		}
		if len(command) > 0 && a.finds(command[0]) {
			e.Hint = a.retyped(argv, []string{"--rw", "."}, quoteArgs(command))
		} else if strings.Contains(argv[1], "/") {
			e.Hint = a.retyped(argv, nil, "sh -c "+shell.Quote(line))
		}
	case e.Code != supervise.CodeNotFound:
	case argv[0] == "none" && a.args[max(len(a.args)-len(argv)-1, 0)] == "--net": // which takes no value
		at, command := len(a.args)-len(argv)-1, argv[1:]
		if len(command) > 0 && command[0] == "--" {
			command = command[1:]
		}
		without := &app{args: slices.Delete(slices.Clone(a.args), at, at+1)}
		if len(command) > 0 {
			e.Hint = without.retyped(argv, []string{"--no-net"}, quoteArgs(command))
		}
	case slices.Contains(bash, argv[0]) && a.finds("bash"):
		e.Hint = a.retyped(argv, nil, "bash -c "+shell.Quote(line))
	case strings.ContainsAny(argv[0], " =;&|<>") || slices.Contains(builtins, argv[0]):
		e.Hint = a.retyped(argv, nil, "sh -c "+shell.Quote(line))
	}
	return err
}

// finds reports whether a word is a program.
func (a *app) finds(word string) bool {
	_, err := supervise.LookPath(word, a.env, "")
	return err == nil
}
