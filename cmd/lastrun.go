package cmd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
)

// lastRun is the run that failed last in a directory, as why offers it again: the
// words behind "zsbx run", without the values of variables.
type lastRun struct {
	Dir  string   `json:"dir"`
	Args []string `json:"args"`
}

// lastRunFile is where it is kept, for this user alone: no command can look into
// zsbx's own directory.
func lastRunFile() (file, dir string, err error) {
	if dir, err = os.Getwd(); err != nil {
		return "", "", err
	}
	h, err := policy.ThisHost()
	if err != nil {
		return "", "", err
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(h.StateHome(), "zsbx", "last", hex.EncodeToString(sum[:16])+".json"), dir, nil
}

// afterFailure keeps the run that failed, and on a terminal says how to find out why.
func (o *runFlags) afterFailure(a *app, argv []string) {
	n := len(a.args) - len(argv)
	args := append(withoutValues(a.args[1:n]), a.args[n:]...)
	if file, dir, err := lastRunFile(); err == nil {
		_ = writeLastRun(file, &lastRun{dir, args}) // without it why needs a command
	}
	if f, ok := a.stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		a.say.hint("zsbx why %s", quoteArgs(args))
	}
}

// withoutValues leaves the values of variables out of run's flags.
func withoutValues(flags []string) []string {
	out := append([]string{}, flags...)
	for i, word := range out {
		if i > 0 && out[i-1] == "--env" {
			out[i], _, _ = strings.Cut(word, "=")
		} else if value, ok := strings.CutPrefix(word, "--env="); ok {
			value, _, _ = strings.Cut(value, "=")
			out[i] = "--env=" + value
		}
	}
	return out
}

func writeLastRun(file string, l *lastRun) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	forgetLastRuns(filepath.Dir(file))
	return err
}

// maxLastRuns is in how many directories a run that failed is remembered.
const maxLastRuns = 100

// forgetLastRuns removes the oldest where there are more.
func forgetLastRuns(dir string) {
	entries, _ := os.ReadDir(dir)
	if len(entries) <= maxLastRuns {
		return
	}
	var all []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			all = append(all, info)
		}
	}
	slices.SortFunc(all, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, old := range all[min(len(all), maxLastRuns):] {
		os.Remove(filepath.Join(dir, old.Name()))
	}
}

// again offers the run that failed last in this directory.
func (o *runFlags) again(a *app) error {
	file, dir, err := lastRunFile()
	if err != nil {
		return err
	}
	var l lastRun
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && (l.Dir != dir || len(l.Args) == 0):
		return usageHint("zsbx why --help", "no run failed in %s that is remembered: COMMAND is needed", shell.Quote(dir))
	case err != nil:
		return err
	}
	line := "zsbx why " + quoteArgs(l.Args)
	yes, err := askTerminal("run it again?", func(w io.Writer) { fmt.Fprintf(w, "zsbx: why: %s\n", printable(line)) })
	if err != nil {
		return usageHint(line, "nobody can be asked whether the last failed run is to be run again: there is no terminal")
	}
	if !yes {
		return status(exitFailed)
	}
	a.args = append([]string{"why"}, l.Args...)
	root := newRoot(a, a.args)
	root.SetArgs(a.args)
	return root.Execute()
}
