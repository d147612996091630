package cmd

import (
	"bytes"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

func newCompletion(a *app) command {
	scripts := map[string]func(*cobra.Command, io.Writer) error{
		"bash": BashCompletion,
		"zsh":  (*cobra.Command).GenZshCompletion,
		"fish": func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
	}
	return command{Command: &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a completion script for a shell",
		Long:  "Print a script that teaches a shell to complete zsbx's commands and flags.",
		Example: `  zsbx completion bash > ~/.local/share/bash-completion/completions/zsbx
  zsbx completion zsh > ~/.zfunc/_zsbx
  zsbx completion fish > ~/.config/fish/completions/zsbx.fish`,
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || scripts[args[0]] == nil {
				return usageHint("zsbx completion bash", "name one shell: bash, zsh or fish")
			}
			return writeErr(scripts[args[0]](newRoot(a, nil), a.stdout))
		},
	}}
}

// BashCompletion writes the script for bash. Cobra's needs the package bash-completion,
// of which it uses one function; where that is not there the words are what blanks part.
func BashCompletion(root *cobra.Command, w io.Writer) error {
	const needs = "    _get_comp_words_by_ref \"$@\" cur prev words cword\n"
	const instead = `    if declare -F _get_comp_words_by_ref >/dev/null; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    local line=${COMP_LINE:0:COMP_POINT}
    IFS=$' \t' read -r -a words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    cword=$((${#words[@]} - 1)) cur=${words[${#words[@]} - 1]} prev=${words[${#words[@]} - 2]}
`
	var b bytes.Buffer
	if err := root.GenBashCompletionV2(&b, true); err != nil {
		return err
	}
	_, err := io.WriteString(w, strings.Replace(b.String(), needs, instead, 1))
	return err
}
