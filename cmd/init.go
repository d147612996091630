package cmd

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/internal/compose"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/terminal"
	"github.com/zsbx/zsbx/policy"
)

func newInit(a *app) *cobra.Command {
	l := &learner{a: a, write: true}
	c := command("init", l.init)
	fs := c.Flags()
	fs.BoolVarP(&l.yes, "yes", "y", false, "accept all proposals except sockets")
	l.policyFlags.add(a, fs)
	return c
}

func (l *learner) init(argv []string) error {
	h, err := l.thisHost()
	if err != nil {
		return err
	}
	file := filepath.Join(h.Dir, resolve.ProjectFile)
	if _, err := os.Lstat(file); err == nil {
		return refusal(supervise.CodePolicy, "zsbx learn --help",
			"%s exists already: zsbx learn --write adds to it", file)
	}
	usual := ""
	if len(argv) == 0 {
		usual, argv = usualCommand(h.Dir)
	}
	if usual != "" {
		l.a.say.line("learn", "36",
			"running the usual command for "+usual+" under its policy, to see what it needs: "+quoteArgs(argv))
	}
	if len(argv) > 0 {
		if err := l.run(argv); err != nil {
			return err
		}
		if _, err := os.Lstat(file); err == nil {
			return nil
		}
	}
	if err := writeProject(h.Dir, fitting(h, argv), true); err != nil {
		return coded(supervise.CodePolicy, err)
	}
	return l.a.printText(file + "\n")
}

// usualCommand returns the command that builds the project in dir, and the file that says so, or
// nothing.
func usualCommand(dir string) (file string, argv []string) {
	for _, c := range []struct{ file, command string }{
		{"Cargo.toml", "cargo build"}, {"go.mod", "go build ./..."},
		{"package-lock.json", "npm ci"}, {"package.json", "npm test"},
		{"uv.lock", "uv sync"}, {"poetry.lock", "poetry install"},
		{"pyproject.toml", "python3 -m venv .venv"}, {"setup.py", "python3 -m venv .venv"},
		{"GNUmakefile", "make"}, {"Makefile", "make"}, {"makefile", "make"},
	} {
		if _, err := os.Lstat(filepath.Join(dir, c.file)); err == nil {
			return c.file, strings.Fields(c.command)
		}
	}
	return "", nil
}

// fitting returns the template with the project's presets, or an example of one, and its command.
func fitting(h host.Host, argv []string) []byte {
	var presets []string
	for _, p := range resolve.Detect(h, argv, false) {
		if !strings.Contains(p.Value, ":") {
			presets = append(presets, fmt.Sprintf("%q", p.Value))
		}
	}
	if presets == nil {
		presets = []string{`"rust"`}
	}
	command := "make"
	if len(argv) > 0 {
		command = terminal.Printable(quoteArgs(argv))
	}
	words := strings.NewReplacer("PRESETS", strings.Join(presets, ", "), "COMMAND", command)
	return []byte(words.Replace(string(template)))
}

// template is a policy that asks for nothing. PRESETS and COMMAND are replaced.
//
//go:embed template.toml
var template []byte

// save adds what was learnt to the project's policy, shows what changes, and asks
// whether to trust the file.
func (l *learner) save() error {
	file := filepath.Join(l.base.Dir, resolve.ProjectFile)
	now, err := l.projectText()
	if err != nil {
		return err
	}
	text, err := policy.Amend(file, l.old, l.from.More)
	if !bytes.Equal(now, l.old) {
		err = errors.New("it has changed while the command ran; nothing was written, look at it first")
	}
	if err != nil {
		err = fmt.Errorf("%s: %w: add the lines by hand", file, err)
		return errors.Join(l.print(), coded(supervise.CodePolicy, err))
	}
	if bytes.Equal(bytes.TrimSpace(l.old), bytes.TrimSpace(text)) {
		return nil
	}
	if len(text) > 0 {
		text = append(text, l.hostComments()...)
	}
	if err := l.a.printText(string(diff.Diff(resolve.ProjectFile, l.old, resolve.ProjectFile, text))); err != nil {
		return err
	}
	if err := writeProject(l.base.Dir, text, l.old == nil); err != nil {
		return coded(supervise.CodePolicy, err)
	}
	return l.trust(file, text)
}

// projectText returns the project's policy in the working directory, or nil.
func (l *learner) projectText() ([]byte, error) {
	h, err := l.thisHost()
	if err != nil {
		return nil, err
	}
	text, err := host.ReadFile(filepath.Join(h.Dir, resolve.ProjectFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, coded(supervise.CodePolicy, err)
}

// trust asks whether to trust the policy that was just written. Unless the user says yes,
// it prints what to type.
func (l *learner) trust(file string, text []byte) error {
	all, err := compose.Projects(l.base.Host())
	if err != nil {
		return l.composeErr(err)
	}
	hash := fmt.Sprintf("%x", sha256.Sum256(text))
	for _, p := range all {
		if p.File != file || p.SHA256() != hash || p.Trusted() || len(p.Asks) == 0 {
			continue
		}
		if isTerminal(l.a.stderr) {
			if yes, _ := confirm("zsbx: trust " + terminal.Printable(file) + " as it is now?"); yes {
				return p.Trust()
			}
		}
		l.a.say.hint("%s=%s", l.trustCommand(), hash)
	}
	return nil
}

// writeProject writes the project's policy at once or not at all. It follows no link,
// and with fresh it never replaces a file.
func writeProject(dir string, text []byte, fresh bool) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	mode := fs.FileMode(0o666) // less the umask
	if st, err := root.Lstat(resolve.ProjectFile); err == nil {
		mode = st.Mode().Perm()
		if !st.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file: nothing was written", filepath.Join(dir, resolve.ProjectFile))
		}
	}
	return compose.Replace(root, resolve.ProjectFile, bytes.NewReader(text), mode, fresh)
}
