package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/layer/apply"
	"github.com/zsbx/zsbx/internal/nearest"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/track"
	"github.com/zsbx/zsbx/internal/units"
)

// The values of --apply.
const (
	applyNever = "never"
	applyAsk   = "ask"
	applyClean = "clean"
)

// tryWords are the commands below zsbx try.
func tryWords() map[string]func(*app) *cobra.Command {
	return map[string]func(*app) *cobra.Command{
		"list":    newTryList,
		"show":    newTryShow,
		"apply":   newTryApply,
		"discard": newTryDiscard,
	}
}

func newTry(a *app) *cobra.Command {
	o := &runFlags{apply: applyAsk}
	c := command("try", func(args []string) error {
		if len(args) == 0 && o.fs.NFlag() == 0 {
			return a.listLayers()
		}
		_ = o.asked.Put("fs.writes", named("try", "try")) // only ports can be wrong
		return a.misspelt(o.run(a, args), args)
	})
	fs := c.Flags()
	o.add(a, c)
	fs.BoolVar(&o.opts.Keep, "keep", false, "leave background processes running when COMMAND ends")
	fs.BoolVar(&o.opts.Explain, "explain", false, "afterwards report what COMMAND was refused, as zsbx why does")
	fs.BoolVar(&o.dryRun, "dry-run", false, "print what would be enforced, and exit")
	o.choice(fs, &o.apply, "apply", []string{applyNever, applyAsk, applyClean},
		"apply what COMMAND wrote `WHEN` it has ended: never; ask on a terminal; "+
			"or clean: if nothing needs a look and nothing has changed meanwhile, else the exit status is 75")
	fs.Lookup("json").Usage = "print JSON on standard error; without --apply clean nothing is applied"
	for word, newCommand := range tryWords() {
		if a.mayMean(word) {
			below := newCommand(a)
			below.DisableFlagsInUseLine = true
			below.Flags().SortFlags = false
			c.AddCommand(below)
		}
	}
	return c
}

// misspelt adds to the error that a command was not found which command below zsbx try may be meant.
func (a *app) misspelt(err error, args []string) error {
	e, is := errors.AsType[*supervise.Error](err)
	if is && e.Code == supervise.CodeNotFound && len(args) > 0 && a.args[1] == args[0] {
		e.Err = fmt.Errorf("%w%s", e.Err, nearest.DidYouMean(args[0], slices.Sorted(maps.Keys(tryWords()))))
	}
	return err
}

// mayMean reports whether the command line may have a command below zsbx try. It can only be the word
// that follows: a later one may belong to the command that is tried. A word that a shell completes may become any.
func (a *app) mayMean(word string) bool {
	args := a.args
	completes := len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd)
	if completes {
		args = args[1:]
	}
	if len(args) < 2 || args[0] != "try" || completes && len(args) == 2 {
		return true
	}
	return slices.Contains([]string{word, "--help", "-h"}, args[1])
}

// commandBelow makes a command below zsbx try.
func commandBelow(name string, run func(args []string) error) *cobra.Command {
	c := command("try "+name, func(args []string) error { return coded(supervise.CodeSession, run(args)) })
	c.Use = strings.TrimPrefix(c.Use, "try ")
	return c
}

func newTryList(a *app) *cobra.Command {
	c := commandBelow("list", func([]string) error { return a.listLayers() })
	c.Args = noArgs
	c.Flags().BoolVar(&a.say.json, "json", false, "print JSON")
	return c
}

// listed is a layer, with what is known of its session.
type listed struct {
	*layer.Layer

	life  track.Life // or stateApplied, statePending
	bytes int64
	files int
	sums  map[layer.Op]int // of entries
	err   error            // why not all of it is known
}

// The states of a layer whose session has ended, besides track.Ended: nothing of it is left to apply; an apply
// has begun and not ended.
const (
	stateApplied track.Life = "applied"
	statePending track.Life = "pending"
)

// layers returns all layers, the oldest first.
func (a *app) layers() ([]*listed, error) {
	all, err := layer.All(supervise.LayerState())
	lives, unread := supervise.Lives()
	out := each(all, func(l *layer.Layer) *listed {
		x := &listed{Layer: l, life: cmp.Or(lives[l.Session], track.Ended)}
		x.look()
		return x
	})
	return out, errors.Join(err, unread)
}

// look finds out how much is in a layer.
func (x *listed) look() {
	if x.Damage != nil {
		x.err = x.Damage
		return
	}
	x.bytes, x.files, x.err = x.Size()
	changes, err := x.Changes()
	left, unread := apply.Left(x.Layer, changes)
	pending, _ := apply.Pending(x.Layer)
	x.err = cmp.Or(x.err, err, unread)
	x.sums = make(map[layer.Op]int)
	for i := range left {
		x.sums[left[i].Op]++
	}
	switch {
	case x.err != nil || x.life != track.Ended:
	case pending:
		x.life = statePending
	case len(left) == 0:
		x.life = stateApplied
	}
}

func (a *app) listLayers() error {
	all, err := a.layers()
	failed := errors.Join(a.show(each(all, layerJSON), layerTable(all)), err)
	for _, x := range all {
		if x.err != nil && x.Damage == nil && !a.say.json {
			a.say.warn("%v", x.err)
		}
	}
	return failed
}

type jsonLayer struct {
	ID      string      `json:"id"`
	Name    string      `json:"name,omitempty"`
	State   track.Life  `json:"state"`
	Command []string    `json:"command"`
	Dir     string      `json:"dir"`
	Began   time.Time   `json:"began"`
	Trees   []string    `json:"trees"`
	Bytes   int64       `json:"bytes"`
	Files   int         `json:"files"`
	Changes jsonChanges `json:"changes"`
	Error   string      `json:"error,omitempty"`
}

// jsonChanges has the numbers of entries.
type jsonChanges struct {
	Added   int `json:"added"`
	Changed int `json:"changed"`
	Removed int `json:"removed"`
}

func treePath(t layer.Tree) string { return t.Path }

func layerJSON(x *listed) jsonLayer {
	j := jsonLayer{
		ID: x.Session, Name: x.Name, State: x.life, Command: x.Command, Dir: x.Record.Dir, Began: x.Began,
		Trees: each(x.Trees, treePath), Bytes: x.bytes, Files: x.files,
		Changes: jsonChanges{x.sums[layer.Add], x.sums[layer.Modify], x.sums[layer.Remove]},
	}
	if x.err != nil {
		j.Error = x.err.Error()
	}
	return j
}

// layerTable returns a table of layers, which is empty if there are none.
func layerTable(all []*listed) *table {
	t := &table{}
	if len(all) > 0 {
		t.row("ID", "NAME", "STATE", "AGE", "SIZE", "ADDED", "CHANGED", "REMOVED", "TREES")
	}
	for _, x := range all {
		row := []string{x.Session[:shortest], cmp.Or(x.Name, "-"), string(x.life), age(x.Began), units.Short(x.bytes)}
		for _, op := range []layer.Op{layer.Add, layer.Modify, layer.Remove} {
			sum := strconv.Itoa(x.sums[op])
			if x.err != nil {
				sum = "?"
			}
			row = append(row, sum)
		}
		t.row(append(row, quoteArgs(each(x.Trees, treePath)))...)
	}
	return t
}

// age returns how long ago something was, for people.
func age(when time.Time) string { return time.Since(when).Truncate(time.Second).String() }

// needLayer notes a mistake if a command line names no layer.
func (a *app) needLayer(args []string) {
	if len(args) == 0 {
		a.errs = append(a.errs, usageHint("zsbx try list", "no layer given"))
	}
}

// findLayer finds a layer by its id, its name or the beginning of its id.
func findLayer(ref string) (*layer.Layer, error) {
	l, err := layer.Find(supervise.LayerState(), ref)
	if err != nil {
		return nil, refusal(supervise.CodeSession, "zsbx try list", "%w", err)
	}
	return l, nil
}

// findLayers finds layers by ids, names or beginnings of ids.
func findLayers(refs []string) (all []*layer.Layer, _ error) {
	var errs []error
	for _, ref := range refs {
		l, err := findLayer(ref)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		same := func(x *layer.Layer) bool { return x.Session == l.Session }
		if !slices.ContainsFunc(all, same) {
			all = append(all, l)
		}
	}
	return all, errors.Join(errs...)
}
