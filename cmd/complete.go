package cmd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/imports"
	"github.com/zsbx/zsbx/track"
)

// completeFlags teaches shells the values of flags and the names of commands.
func completeFlags(root *cobra.Command) {
	values := map[string][]string{
		"fallback":  {fallbackDeny, fallbackWarn, fallbackPrompt},
		"track":     {"auto", "domain", "cgroup", "subtree"},
		"allow-gap": append(enforce.GapNames(), enforce.AllHardening),
		"format":    formats(),
		"os":        {"linux", "macos"},
		"guard":     {"catastrophic", "interpreters", "escapes", "exfiltration", "shells", "off"},
	}
	for _, p := range policy.Presets() {
		values["preset"] = append(values["preset"], p.Name+"\t"+p.Description)
	}
	for _, c := range root.Commands() {
		for name, list := range values {
			if name == "format" && c.Name() == "import" {
				list = imports.Formats()
			}
			if c.Flags().Lookup(name) != nil {
				// It can only fail for a flag that does not exist.
				_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
			}
		}
		if c.Name() == "run" || c.Name() == "profile" || c.Name() == "check" {
			c.ValidArgsFunction = completeCommand
		}
		if c.Name() == "reap" {
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
