package cmd

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/policy"
)

func newInit(a *app) command {
	o := &learnFlags{write: true}
	c := &cobra.Command{
		Use:   "init [flags] [[--] COMMAND [ARG...]]",
		Short: "Write a policy for the project",
		Long: `Find the policy that the project's usual command needs, as zsbx learn does, and
write it to ` + policy.ProjectFile + ` in the working directory. A file that is there is never replaced.

The command is that of the first file that is there: cargo build for Cargo.toml,
go build for go.mod, npm for package.json, uv, poetry or a virtual environment
for Python, make for a Makefile. Without any, or when the command needs nothing,
a template is written, all in comments.`,
		Example: `  zsbx init
  zsbx init --yes -- make test`,
		RunE: func(_ *cobra.Command, args []string) error { return o.init(a, args) },
	}
	fs := c.Flags()
	fs.SetInterspersed(false)
	fs.BoolVarP(&o.yes, "yes", "y", false, "accept all proposals")
	o.policyFlags.add(fs)
	return command{c, func() error { _, err := o.policy(); return err }}
}

func (o *learnFlags) init(a *app, argv []string) error {
	h, err := o.thisHost()
	if err != nil {
		return err
	}
	file := filepath.Join(h.Dir, policy.ProjectFile)
	if _, err := os.Lstat(file); err == nil {
		return &failure{code: codePolicy, status: exitFailed, hint: "zsbx learn --help", err: fmt.Errorf("%s is there already: zsbx learn --write adds to it", file)}
	}
	if len(argv) == 0 {
		argv = usualCommand(h.Dir)
	}
	if len(argv) > 0 {
		a.say.line("learn", "36", quoteArgs(argv))
		if err := o.run(a, argv); err != nil {
			return err
		}
		if _, err := os.Lstat(file); err == nil || !o.nothing {
			return nil
		}
	}
	if err := writeProject(h.Dir, template, true); err != nil {
		return coded(codePolicy, err)
	}
	return a.printText(file + "\n")
}

// usualCommand is what builds the project in a directory, nil where that is not
// known.
func usualCommand(dir string) []string {
	for _, c := range []struct{ file, command string }{
		{"Cargo.toml", "cargo build"}, {"go.mod", "go build ./..."},
		{"package-lock.json", "npm ci"}, {"package.json", "npm test"},
		{"uv.lock", "uv sync"}, {"poetry.lock", "poetry install"},
		{"pyproject.toml", "python3 -m venv .venv"}, {"setup.py", "python3 -m venv .venv"},
		{"GNUmakefile", "make"}, {"Makefile", "make"}, {"makefile", "make"},
	} {
		if _, err := os.Lstat(filepath.Join(dir, c.file)); err == nil {
			return strings.Fields(c.command)
		}
	}
	return nil
}

// template is a policy that asks for nothing.
//
//go:embed template.toml
var template []byte
