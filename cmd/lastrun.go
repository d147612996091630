package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/compose"
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
	h, err := policy.ThisHost()
	if err == nil {
		file, err = compose.StateFile(&h, "last", h.Dir)
	}
	return file, h.Dir, err
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
	text, err := json.Marshal(l)
	if err == nil {
		err = compose.WriteState(file, text)
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
	age := func(e os.DirEntry) time.Time {
		if info, err := e.Info(); err == nil {
			return info.ModTime()
		}
		return time.Time{}
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return age(b).Compare(age(a)) })
	for _, old := range entries[maxLastRuns:] {
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
