package apply

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/shell"
)

// Options says what is applied. Paths are absolute, and mean all that is below them, too.
type Options struct {
	Paths        []string                 // nil is all
	Only         func(*layer.Change) bool // of those, the ones that are made, and no others; nil is all
	Theirs, Ours []string                 // of conflicts here, take what the command wrote, or leave what is there
	Progress     func(done, total int)
	Stopped      func() bool // asked between two changes: then the apply ends with ErrStopped; nil is never
}

// ErrStopped says that an apply or an undo ended because it was asked to.
var ErrStopped = errors.New("stopped before it had ended")

// Mistakes says that paths of Options mean nothing in a layer. Nothing was applied.
type Mistakes []Mistake

// Mistake is one of these paths.
type Mistake struct {
	Option string // "theirs" or "ours"; "" is Paths
	Path   string
	Why    string
}

func (m Mistakes) Error() string {
	var all []string
	for _, x := range m {
		all = append(all, strings.TrimLeft(x.Option+" "+shell.Quote(x.Path)+": "+x.Why, " "))
	}
	return strings.Join(all, "; ")
}

// check returns the mistakes in options, nil if there are none.
func (o *Options) check(changes []layer.Change, trees []layer.Tree) (wrong Mistakes) {
	for _, option := range []struct {
		name  string
		paths []string
	}{{"", o.Paths}, {"theirs", o.Theirs}, {"ours", o.Ours}} {
		for _, p := range option.paths {
			if why := o.wrong(option.name, p, changes, trees); why != "" {
				wrong = append(wrong, Mistake{option.name, p, why})
			}
		}
	}
	return wrong
}

// wrong returns why a path of an option means nothing, or "".
func (o *Options) wrong(option, p string, changes []layer.Change, trees []layer.Tree) string {
	change, conflict := below(p, changes, trees)
	decides := option != ""
	for _, reason := range []struct {
		is  bool
		why string
	}{
		{!change, "nothing would change there or below"},
		{decides && !conflict, "no conflict is there or below"},
		{decides && o.Paths != nil && !among(o.Paths, p), "it is not among the paths that are to be applied"},
		{option == "ours" && slices.Contains(o.Theirs, p), "it can't be decided both ways"},
	} {
		if reason.is {
			return reason.why
		}
	}
	return ""
}

// below reports whether a layer changes something at a path or below it, and whether a conflict is there.
func below(p string, changes []layer.Change, trees []layer.Tree) (change, conflict bool) {
	for i := range changes {
		c := &changes[i]
		if !c.Declined && among([]string{p}, filepath.Join(trees[c.Tree].Path, c.Path)) {
			change = true
			conflict = conflict || c.Conflict != ""
		}
	}
	return change, conflict
}

// Result is what an apply did.
type Result struct {
	Applied            int            // changes, with those of an earlier apply that did not end
	Conflicts, Refused []layer.Change // those among Paths that were not applied
	Left               int            // changes that the layer still has, but for those that Ours dropped; -1: unknown
}

// reason is why a change is not made. It is not the end of the others.
type reason struct {
	text    string
	refused bool // else it is a conflict
}

func (r reason) Error() string { return r.text }

func changed(why string) error { return reason{text: why} }
func refusal(why string) error { return reason{text: why, refused: true} }

// leave notes a change that is not made. It returns the errors that are no reason for that, but the end of all.
func (r *Result) leave(c layer.Change, err error) error {
	why, is := err.(reason)
	switch {
	case !is:
		return err
	case why.refused:
		c.Refused = why.text
		r.Refused = append(r.Refused, c)
	default:
		c.Conflict = why.text
		r.Conflicts = append(r.Conflicts, c)
	}
	return nil
}

// among reports whether a path is one of some others or below one.
func among(paths []string, name string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		return name == p || strings.HasPrefix(name, strings.TrimSuffix(p, "/")+"/")
	})
}
