package cmd

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
)

func commands() map[string]func(*app) *cobra.Command {
	return map[string]func(*app) *cobra.Command{
		"run": newRun, "why": newWhy, "profile": newProfile, "check": newCheck, "ps": newPs, "reap": newReap, "log": newLog,
		"learn": newLearn, "init": newInit, "import": newImport, "completion": newCompletion, "version": newVersion,
	}
}

func isCommand(word string) bool { return commands()[word] != nil }

// newRoot builds the command tree. Building all commands and their flags costs
// more than all else that run does before it forks, so when args starts with
// the name of a command only that one is built. Help, completion and mistakes
// get the whole tree.
func newRoot(a *app, args []string) *cobra.Command {
	root := command("zsbx", nil)
	root.SilenceErrors, root.SilenceUsage, root.CompletionOptions.DisableDefaultCmd = true, true, true
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
		return unknownCommand(args)
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

// helpText is what is said of each command: "= " and how it is used, a line on what it
// does, more on that, and examples.
//
//go:embed help.txt
var helpText string

// command makes one, with its help.
func command(name string, run func(args []string) error) *cobra.Command {
	_, text, _ := strings.Cut(helpText, "= "+name)
	text, _, _ = strings.Cut(text, "\n\n= ")
	use, text, _ := strings.Cut(text, "\n")
	short, text, _ := strings.Cut(text, "\n\n")
	long, examples, _ := strings.Cut(text, "\n\nExamples:\n")
	c := &cobra.Command{
		Use: name + use, Short: short, Long: long, Example: strings.TrimRight(examples, "\n"), Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return run(args) },
	}
	if strings.Contains(use, "COMMAND") {
		c.ValidArgsFunction = completeCommand
	}
	return c
}

// unknownCommand says that there is no such command and what may be meant.
func unknownCommand(args []string) error {
	hint := "zsbx --help"
	if name, _, more := strings.Cut(args[0], " "); more && isCommand(name) {
		return usageHint("", "%s is one word, as all that follows the interpreter in a #! line; this one splits it: #!/usr/bin/env -S zsbx %s", shell.Quote(args[0]), args[0])
	}
	if _, err := sandbox.LookPath(args[0], nil, ""); err == nil {
		hint = "zsbx run -- " + quoteArgs(args)
	}
	names := slices.Sorted(maps.Keys(commands()))
	return usageHint(hint, "unknown command %s%s", shell.Quote(args[0]), policy.DidYouMean(args[0], names))
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageHint(c.CommandPath()+" --help", "%s takes no arguments, and got %s", c.CommandPath(), shell.Quote(args[0]))
	}
	return nil
}

// quoteArgs writes a command line as a POSIX shell would have to be given it.
func quoteArgs(args []string) string {
	return strings.Join(each(args, shell.Quote), " ")
}

// count is "1 process", "2 processes".
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// mostNamed is how much of one kind a warning names.
const mostNamed = 5

// few names the first of many, and how many more there are.
func few(names []string) string {
	if more := len(names) - mostNamed; more > 0 {
		names = append(names[:mostNamed:mostNamed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func newVersion(a *app) *cobra.Command {
	c := command("version", func([]string) error { return a.printVersion() })
	c.Args = noArgs
	c.Flags().BoolVar(&a.say.json, "json", false, "print JSON")
	return c
}

// printVersion prints what the go command wrote into the binary.
func (a *app) printVersion() error {
	v := versionInfo{Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if b, ok := debug.ReadBuildInfo(); ok {
		v.Version = cmp.Or(b.Main.Version, v.Version)
		for _, s := range b.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Revision = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	t := &table{}
	t.line("zsbx %s %s/%s %s", v.Version, v.OS, v.Arch, v.Go)
	return a.show(v, t)
}
