package cmd

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/imports"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/terminal"
)

func newImport(a *app) *cobra.Command {
	var format string
	c := command("import", func(args []string) error { return coded(supervise.CodePolicy, a.importFile(format, args)) })
	c.Flags().StringVar(&format, "format", "",
		"the format of FILE, by `NAME`: srt, zed, codex, landrun or firejail; "+
			"by default its name and JSON in it decide")
	words := cobra.FixedCompletions(imports.Formats(), cobra.ShellCompDirectiveNoFileComp)
	_ = c.RegisterFlagCompletionFunc("format", words)
	return c
}

func (a *app) importFile(format string, args []string) error {
	if len(args) != 1 {
		return usageHint("zsbx import --help", "one FILE is needed")
	}
	data, err := host.ReadFile(args[0])
	if err != nil {
		return err
	}
	r, err := imports.Read(format, args[0], data)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Made from %s (%s).\n", shell.Quote(args[0]), r.Format)
	for _, l := range r.Left {
		fmt.Fprintf(&b, "# Not taken over: %s.\n", terminal.Printable(strings.ReplaceAll(l, "\t", " ")))
	}
	b.WriteString("\n")
	if err := r.Policy.EncodeTOML(&b); err != nil {
		return err
	}
	if len(r.Left) > 0 {
		a.say.warn("%s not taken over: see the comments in the policy",
			count(len(r.Left), "setting is", "settings are"))
	}
	return a.printText(b.String())
}
