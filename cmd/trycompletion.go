package cmd

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/layer/review"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/terminal"
)

// completeLayers completes with the names and ids of layers, each with its command.
func completeLayers(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	all, _ := layer.All(supervise.LayerState())
	var refs []string
	for _, l := range all {
		what := "\t" + terminal.Printable(commandLine(l.Command))
		if l.Name != "" {
			refs = append(refs, l.Name+what)
		}
		refs = append(refs, l.Session+what)
	}
	return refs, cobra.ShellCompDirectiveNoFileComp
}

// completeLayer completes the first word with a layer, and the others with what would change in it.
func completeLayer(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return completeLayers(c, args, word)
	}
	return completeChanges(args[0], word, func(*layer.Change) bool { return true })
}

// completeConflict completes with the conflicts in the layer that the first argument means.
func completeConflict(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeChanges(args[0], word, func(c *layer.Change) bool { return c.Conflict != "" })
}

// completeChanges completes a path, up to its next slash, with those of a layer's changes. What is new or
// removed is no file here.
func completeChanges(ref, word string, is func(*layer.Change) bool) ([]string, cobra.ShellCompDirective) {
	const noFiles = cobra.ShellCompDirectiveNoFileComp
	l, err := layer.Find(supervise.LayerState(), ref)
	if err != nil || l.Damage != nil {
		return nil, noFiles
	}
	changes, _ := l.Changes()
	h, _ := host.ThisHost()
	trees := each(l.Trees, treePath)
	how := noFiles
	var names []string
	for i := range changes {
		name := review.NameFrom(h.Dir, trees, changes[i].Tree, changes[i].Path)
		if filepath.IsAbs(word) {
			name = filepath.Join(trees[changes[i].Tree], changes[i].Path)
		}
		if changes[i].Type.IsDir() {
			name += "/"
		}
		rest, fits := strings.CutPrefix(name, word)
		odd := strings.Contains(name, "\t") || terminal.Printable(name) != name // a shell would take it for others
		if !fits || !is(&changes[i]) || odd {
			continue
		}
		if first, _, more := strings.Cut(rest, "/"); more {
			name = word + first + "/"
			how |= cobra.ShellCompDirectiveNoSpace
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), how
}
