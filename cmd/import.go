package cmd

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/imports"
	"github.com/zsbx/zsbx/policy/shell"
)

func newImport(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "import [flags] FILE",
		Short: "Make a policy of another sandbox's settings",
		Long: `Print a policy, in TOML, that asks for what FILE asks another sandbox for, with a
list of what zsbx can't say, and why, as comments at its beginning. FILE holds
the settings of srt, of Zed or of codex, a command line of landrun, or a profile
of firejail.`,
		Example: `  zsbx import ~/.srt-settings.json > policy.toml
  zsbx import --format firejail /etc/firejail/wget.profile`,
	}
	var format string
	c.Flags().StringVar(&format, "format", "", "what FILE is, by `NAME`: srt, zed, codex, landrun or firejail; by default its name and JSON in it tell")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(imports.Formats(), cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usageHint("zsbx import --help", "one FILE is needed")
		}
		data, err := policy.ReadFile(args[0])
		if err != nil {
			return coded(codePolicy, err)
		}
		r, err := imports.Read(format, args[0], data)
		if err != nil {
			return coded(codePolicy, err)
		}
		var b bytes.Buffer
		fmt.Fprintf(&b, "# Made from %s (%s).\n", shell.Quote(args[0]), r.Format)
		for _, l := range r.Left {
			fmt.Fprintf(&b, "# Not taken over: %s.\n", printable(strings.ReplaceAll(l, "\t", " ")))
		}
		b.WriteString("\n")
		if err := r.Policy.EncodeTOML(&b); err != nil {
			return coded(codePolicy, err)
		}
		if len(r.Left) > 0 {
			a.say.warn("%s not taken over: see the comments in the policy", count(len(r.Left), "setting is", "settings are"))
		}
		return a.printText(b.String())
	}
	return c
}
