package cmd

import (
	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/policy/shell"
)

func newCompletion(a *app) command {
	return command{Command: &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a completion script for a shell",
		Long:  "Print a script that teaches a shell to complete zsbx's commands and flags.",
		Example: `  zsbx completion bash > ~/.local/share/bash-completion/completions/zsbx
  zsbx completion zsh > ~/.zfunc/_zsbx
  zsbx completion fish > ~/.config/fish/completions/zsbx.fish`,
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageHint("zsbx completion bash", "name one shell: bash, zsh or fish")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			root := newRoot(a, nil)
			switch args[0] {
			case "bash":
				return writeErr(root.GenBashCompletionV2(a.stdout, true))
			case "zsh":
				return writeErr(root.GenZshCompletion(a.stdout))
			case "fish":
				return writeErr(root.GenFishCompletion(a.stdout, true))
			}
			return usageHint("zsbx completion bash", "no completion for the shell %s: bash, zsh or fish", shell.Quote(args[0]))
		},
	}}
}
