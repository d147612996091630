package cmd

import (
	"bufio"
	"errors"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/layer/apply"
	"github.com/zsbx/zsbx/internal/layer/review"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/internal/supervise"
)

type tryShow struct {
	*mistakes

	tar string
}

func newTryShow(a *app) *cobra.Command {
	o := &tryShow{mistakes: &a.mistakes}
	c := commandBelow("show", func(args []string) error { return o.run(a, args) })
	c.ValidArgsFunction = completeLayer
	fs := c.Flags()
	o.text(fs, &o.tar, "tar", "write an archive of what the command wrote to `FILE`, - for standard output")
	fs.BoolVar(&a.say.json, "json", false, "print JSON: each change, and why it needs a look")
	return c
}

func (o *tryShow) run(a *app, args []string) error {
	if len(args) == 0 {
		o.errs = append(o.errs, usageHint("zsbx try list", "no layer given"))
	}
	o.failIf(o.tar != "" && a.say.json, "--tar and --json can't be used together")
	o.failIf(o.tar != "" && len(args) > 1, "--tar writes all of a layer: it can't be used with paths")
	o.failIf(o.tar == "-" && isTerminal(a.stdout), "--tar -: standard output is a terminal")
	if o.errs != nil {
		return errors.Join(o.errs...)
	}
	l, err := findLayer(args[0])
	if err != nil {
		return err
	}
	var at []spot
	var errs []error
	for _, word := range args[1:] {
		p, err := inTrees(l, word)
		at = append(at, p)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	a.tellState(l)
	r, err := a.review(l)
	if err != nil {
		return err
	}
	defer r.close()
	if err := r.has(at, args[1:]); err != nil {
		return err
	}
	switch {
	case o.tar != "":
		return o.write(a, r)
	case a.say.json:
		return a.show(tried{l.Session, r.below(at).JSON()}, nil)
	}
	return a.showLayer(r, at)
}

// in reports whether a change is at one of some places, or below it.
func in(at []spot, c *layer.Change) bool {
	return slices.ContainsFunc(at, func(p spot) bool {
		return c.Tree == p.tree && (p.rel == "." || host.Within(c.Path, p.rel))
	})
}

// has returns an error that names the words for places where nothing would change.
func (r *reviewed) has(at []spot, words []string) error {
	var errs []error
	for i, p := range at {
		if !slices.ContainsFunc(r.Changes, func(c layer.Change) bool { return in([]spot{p}, &c) }) {
			errs = append(errs, usageHint("zsbx try show "+r.l.Session[:shortest],
				"%s: nothing would change there or below", shell.Quote(words[i])))
		}
	}
	return errors.Join(errs...)
}

// below returns a review of what is at some places and below, or of all if there are none.
func (r *reviewed) below(at []spot) *review.Review {
	if at == nil {
		return r.Review
	}
	return r.Part(func(c *layer.Change) bool { return in(at, c) })
}

// tellState warns if a layer may still change while it is shown, or was applied in part.
func (a *app) tellState(l *layer.Layer) {
	if err := supervise.Settle(l); err != nil {
		a.say.warn("%v", err)
	}
	if pending, _ := apply.Pending(l); pending { // apply says what is wrong with the journal
		id := l.Session[:shortest]
		a.say.warn("an apply of this layer has not ended")
		a.say.hint("zsbx try apply %s\nzsbx try apply %[1]s --undo", id)
	}
}

// showLayer prints what would change in the trees of a layer, or the difference at places.
func (a *app) showLayer(r *reviewed, at []spot) error {
	w := bufio.NewWriter(a.stdout)
	if at == nil {
		_, _ = w.WriteString(r.List()) // Flush returns the error
	}
	err := r.differences(w, at)
	return errors.Join(err, writeErr(w.Flush()))
}

// write writes the archive. A file that exists is not replaced.
func (o *tryShow) write(a *app, r *reviewed) error {
	var left []string
	var err error
	if o.tar == "-" {
		left, err = review.Tar(a.stdout, r.l, r.Changes)
		err = writeErr(err)
	} else {
		left, err = o.writeFile(r)
	}
	if len(left) > 0 {
		a.say.warn("not in the archive: %s", few(each(left, shell.Quote)))
	}
	return err
}

func (o *tryShow) writeFile(r *reviewed) (left []string, _ error) {
	f, err := os.OpenFile(o.tar, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		left, err = review.Tar(f, r.l, r.Changes)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return left, refusal(supervise.CodeFailed, "", "--tar %s: %w", shell.Quote(o.tar), files.Plain(err))
	}
	return left, nil
}
