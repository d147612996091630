package cmd

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/internal/nearest"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/internal/supervise"
)

// The exit statuses of zsbx itself, as env(1) and timeout(1) have them. Otherwise the
// status is the command's.
const (
	exitOK        = 0
	exitNo        = 1   // check, ps, reap: the answer is no
	exitAfter     = 1   // run: the command ended with 0, and zsbx failed after it
	exitTimeout   = 124 // the command was ended by --timeout
	exitFailed    = 125 // zsbx failed, or refused; the command was not run
	exitCannotRun = 126 // the command was found and can't be executed
	exitNotFound  = 127 // the command was not found
	exitSignal    = 128 // plus the number of the signal that ended the command
	exitLost      = 137 // the command was started and killed, and how it ended is not known
)

// app is the process that zsbx runs in.
type app struct {
	stdout io.Writer
	stderr io.Writer
	env    []string // NAME=VALUE
	say    voice
	cfg    settings
	help   bytes.Buffer // what cobra prints
	args   []string     // without the program's name
	mistakes

	// left is a command that has ended and whose processes --keep leaves running, if there are any. The
	// process in the background goes on serving them, and what they have sent.
	left *supervise.Command
}

// Main runs zsbx with args, without the program's name, and returns the exit
// status: the command's for run, 0 or 1 for what the other commands
// answer, and otherwise one of those that exec(1p) and timeout(1) use.
func Main(args []string) int {
	supervise.Init()
	a := &app{stdout: os.Stdout, stderr: os.Stderr, env: os.Environ()}
	if !supervise.InBackground() {
		out := a.main(args)
		if out.Signal != 0 {
			dieBy(out.Signal)
		}
		return out.Status
	}
	out := a.main(args[1:])
	if err := supervise.Leave(out); err != nil {
		return exitFailed
	}
	if a.left != nil {
		a.left.Served()
	}
	return out.Status
}

func (a *app) main(args []string) supervise.Outcome {
	a.args = args
	a.say.w = a.stderr
	if len(args) > 0 && args[0] == connectWord {
		return a.say.report(connect(a.env, args[1:], os.Stdin, a.stdout))
	}
	var err error
	a.cfg, err = loadSettings(a.env)
	if err != nil {
		// Commands that only look, or that end what is left running, go on.
		if len(args) == 0 || !slices.Contains([]string{"reap", "ps", "check", "version"}, args[0]) {
			return a.say.report(err)
		}
		for _, e := range leaves(err) {
			a.say.warn("%v", e)
		}
	}
	a.say.color = a.cfg.color(a.env, a.stderr)
	root := newRoot(a, args)
	err = root.Execute()
	if a.help.Len() > 0 {
		err = errors.Join(err, a.printText(a.help.String()))
	}
	return a.say.report(err)
}

// Root builds all of zsbx's commands, for programs that write documentation
// from them. Main runs them.
func Root() *cobra.Command {
	return newRoot(&app{stdout: io.Discard, stderr: io.Discard}, nil)
}

// dieBy ends zsbx by the signal that ended the command. A shell that runs zsbx
// in a script goes on after Ctrl-C unless its child died by SIGINT.
func dieBy(s syscall.Signal) {
	signal.Reset(s)
	_ = syscall.Kill(os.Getpid(), s)
	time.Sleep(time.Second) // another thread may get the signal
}

func commands() map[string]func(*app) *cobra.Command {
	return map[string]func(*app) *cobra.Command{
		"run":        newRun,
		"try":        newTry,
		"why":        newWhy,
		"profile":    newProfile,
		"check":      newCheck,
		"ps":         newPs,
		"reap":       newReap,
		"log":        newLog,
		"learn":      newLearn,
		"init":       newInit,
		"import":     newImport,
		"completion": newCompletion,
		"install-to": newInstallTo,
		"version":    newVersion,
	}
}

func isCommand(word string) bool { return commands()[word] != nil }

// newRoot builds the command tree. Building all commands and their flags costs
// more than all else that run does before it forks, so when args starts with
// the name of a command only that one is built. Help, completion and mistakes
// get the whole tree.
func newRoot(a *app, args []string) *cobra.Command {
	root := command("zsbx", nil)
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.CompletionOptions.DisableDefaultCmd = true
	if len(args) > 1 && args[0] == "help" {
		args = append([]string{args[1], "--help"}, args[2:]...)
	}
	root.SetArgs(args)
	root.SetOut(&a.help)
	root.SetErr(a.stderr)
	version := root.Flags().BoolP("version", "V", false, "print the version")
	root.RunE = func(c *cobra.Command, args []string) error {
		switch {
		case *version:
			return a.printVersion()
		case len(args) == 0:
			return c.Help()
		}
		return a.unknownCommand(args)
	}
	root.Flags().SetInterspersed(false)
	root.SetFlagErrorFunc(a.flagError)
	all := commands()
	if len(args) > 0 && all[args[0]] != nil {
		all = map[string]func(*app) *cobra.Command{args[0]: all[args[0]]}
	}
	for _, newCommand := range all {
		c := newCommand(a)
		c.DisableFlagsInUseLine = true
		c.Flags().SortFlags = false
		root.AddCommand(c)
	}
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		completeFlags(root)
	}
	return root
}

// helpText has for each command "= " and its usage, one line that says what it does, a
// description, and examples.
//
//go:embed help.txt
var helpText string

// command makes a command, with its help from help.txt.
func command(name string, run func(args []string) error) *cobra.Command {
	_, text, _ := strings.Cut(helpText, "= "+name)
	text, _, _ = strings.Cut(text, "\n\n= ")
	use, text, _ := strings.Cut(text, "\n")
	short, text, _ := strings.Cut(text, "\n\n")
	long, examples, _ := strings.Cut(text, "\n\nExamples:\n")
	c := &cobra.Command{
		Use:     name + use,
		Short:   short,
		Long:    long,
		Example: strings.TrimRight(examples, "\n"),
		Args:    cobra.ArbitraryArgs,
		RunE:    func(_ *cobra.Command, args []string) error { return run(args) },
	}
	if strings.Contains(use, "COMMAND") {
		c.ValidArgsFunction = completeCommand
	}
	return c
}

// unknownCommand returns the error for an unknown command, with what may be meant.
func (a *app) unknownCommand(args []string) error {
	hint := "zsbx --help"
	if name, _, more := strings.Cut(args[0], " "); more && isCommand(name) {
		return usageHint("", "%s is a single word, like everything after the interpreter in a #! line; "+
			"this line splits it: #!/usr/bin/env -S zsbx %s", shell.Quote(args[0]), args[0])
	}
	if name := otherNames[args[0]]; name != "" {
		hint = strings.TrimSpace("zsbx " + name + " " + quoteArgs(args[1:]))
		return usageHint(hint, "unknown command %s; did you mean %s?", shell.Quote(args[0]), name)
	}
	switch {
	case args[0] == "shell":
		hint = "zsbx run --rw . -- " + path.Base(cmp.Or(os.Getenv("SHELL"), "sh"))
	case len(resolve.PresetsOf(args[:1])) > 0: // it builds something
		hint = "zsbx run --rw . -- " + quoteArgs(args)
	case a.finds(args[0]):
		hint = "zsbx run -- " + quoteArgs(args)
	}
	names := slices.Sorted(maps.Keys(commands()))
	return usageHint(hint, "unknown command %s%s", shell.Quote(args[0]), nearest.DidYouMean(args[0], names))
}

// otherNames are what commands are called elsewhere.
var otherNames = map[string]string{
	"kill": "reap", "stop": "reap", "prune": "reap --stale",
	"list": "ps", "status": "ps", "sessions": "ps",
	"doctor": "check", "verify": "check", "info": "check", "self-test": "check --self-test", "trust": "check --trust",
	"explain": "why", "debug": "why", "trace": "why",
	"exec": "run", "start": "run", "wrap": "run",
	"show": "profile", "print": "profile", "policy": "profile", "presets": "profile --list", "config": "profile",
	"logs": "log", "history": "log", "audit": "log", "new": "init", "create": "init", "completions": "completion",
	"install": "install-to", "copy": "install-to",
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		name := c.CommandPath()
		return usageHint(name+" --help", "%s takes no arguments, but got %s", name, shell.Quote(args[0]))
	}
	return nil
}

// quoteArgs quotes a command line for a POSIX shell.
func quoteArgs(args []string) string {
	return strings.Join(each(args, shell.Quote), " ")
}

// count returns "1 process" or "2 processes".
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// mostNamed is how many things of one kind a warning names.
const mostNamed = 5

// few joins the first mostNamed names and says how many more there are.
func few(names []string) string {
	if more := len(names) - mostNamed; more > 0 {
		names = append(names[:mostNamed:mostNamed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
