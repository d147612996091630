package cmd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zsbx/zsbx/track"
)

// completeFlags teaches shells the values of flags and the names of commands.
func completeFlags(root *cobra.Command) {
	for _, c := range root.Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if v, ok := f.Value.(*flagValue); ok && v.words != nil {
				// It can only fail for a flag that does not exist.
				_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(v.words(), cobra.ShellCompDirectiveNoFileComp))
			}
		})
		switch c.Name() {
		case "run", "profile", "check":
			c.ValidArgsFunction = completeCommand
		case "reap":
			c.ValidArgsFunction = completeSessions
		}
	}
}

// completeCommand completes the first word of a command line with what PATH
// has, the others with files.
func completeCommand(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || word == "" || strings.Contains(word, "/") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var names []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		found, _ := os.ReadDir(dir)
		for _, e := range found {
			if strings.HasPrefix(e.Name(), word) && !e.IsDir() {
				names = append(names, e.Name())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

// completeSessions completes with the names and ids of sessions, and what they run.
func completeSessions(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var refs []string
	if st, err := track.OpenStore(); err == nil {
		all, _ := st.List()
		for i := range all {
			what := "\t" + printable(commandLine(all[i].Record.Argv))
			if name := all[i].Record.Name; name != "" {
				refs = append(refs, name+what)
			}
			refs = append(refs, all[i].ID+what)
		}
	}
	return refs, cobra.ShellCompDirectiveNoFileComp
}
