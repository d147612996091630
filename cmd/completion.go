package cmd

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zsbx/zsbx/internal/terminal"
	"github.com/zsbx/zsbx/internal/track"
)

func newCompletion(a *app) *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	c := command("completion", func(args []string) error {
		if len(args) != 1 || !slices.Contains(shells, args[0]) {
			return usageHint("zsbx completion bash", "name one shell: bash, zsh or fish")
		}
		return writeErr(Completion(newRoot(a, nil), args[0], a.stdout))
	})
	c.ValidArgs = shells
	return c
}

// Completion writes the completion script for bash, zsh or fish.
func Completion(root *cobra.Command, shell string, w io.Writer) error {
	switch shell {
	case "zsh":
		return root.GenZshCompletion(w)
	case "fish":
		return root.GenFishCompletion(w, true)
	}
	return root.GenBashCompletionV2(w, true)
}

// completeFlags registers the values of flags for completion.
func completeFlags(root *cobra.Command) {
	for _, c := range root.Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if v, ok := f.Value.(*flagValue); ok && v.words != nil {
				// It can only fail for a flag that does not exist.
				words := cobra.FixedCompletions(v.words(), cobra.ShellCompDirectiveNoFileComp)
				_ = c.RegisterFlagCompletionFunc(f.Name, words)
			}
		})
	}
}

// completeCommand completes the first word of a command line with the programs on
// PATH, and the others with files.
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

// completeSessions completes with the names and ids of sessions, each with its command.
func completeSessions(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var refs []string
	if st, err := track.OpenStore(); err == nil {
		all, _ := st.List()
		for i := range all {
			what := "\t" + terminal.Printable(commandLine(all[i].Record.Argv))
			if name := all[i].Record.Name; name != "" {
				refs = append(refs, name+what)
			}
			refs = append(refs, all[i].ID+what)
		}
	}
	return refs, cobra.ShellCompDirectiveNoFileComp
}
