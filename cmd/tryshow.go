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

func newTryShow(a *app) *cobra.Command {
	var tar string
	c := commandBelow("show", func(args []string) error { return a.showTry(args, tar) })
	c.ValidArgsFunction = completeLayer
	fs := c.Flags()
	a.text(fs, &tar, "tar", "write an archive of what the command wrote to `FILE`, - for standard output")
	fs.BoolVar(&a.say.json, "json", false, "print JSON: each change, and why it needs a look")
	return c
}

func (a *app) showTry(args []string, tar string) error {
	a.needLayer(args)
	a.failIf(tar != "" && a.say.json, "--tar and --json can't be used together")
	a.failIf(tar != "" && len(args) > 1, "--tar writes all of a layer: it can't be used with paths")
	a.failIf(tar == "-" && isTerminal(a.stdout), "--tar -: standard output is a terminal")
	if a.errs != nil {
		return errors.Join(a.errs...)
	}
	l, err := findLayer(args[0])
	if err != nil {
		return err
	}
	at, err := inTrees(l, args[1:])
	if err != nil {
		return err
	}
	a.tellState(l)
	r, err := a.review(l)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := r.has(at, args[1:]); err != nil {
		return err
	}
	left, err := apply.Left(l, slices.Clone(r.Changes))
	if err == nil && len(left) == 0 && len(r.Changes) > 0 {
		a.say.warn("all of this layer was applied: what is listed has changed since")
	}
	switch {
	case tar != "":
		return a.writeTar(r, tar)
	case a.say.json && at == nil:
		return a.show(tried{l.Session, r.JSON()}, nil)
	case a.say.json:
		return a.show(tried{l.Session, r.below(at...).JSON()}, nil)
	}
	return a.showLayer(r, at)
}

// has returns an error that names the words for paths where nothing would change.
func (r *reviewed) has(at, words []string) error {
	var errs []error
	for i, p := range at {
		if len(r.below(p).Changes) == 0 {
			errs = append(errs, usageHint("zsbx try show "+r.l.Session[:shortest],
				"%s: nothing would change there or below", shell.Quote(words[i])))
		}
	}
	return errors.Join(errs...)
}

// below returns a review of what is at some paths and below.
func (r *reviewed) below(at ...string) *review.Review {
	return r.Part(func(c *layer.Change) bool {
		return slices.ContainsFunc(at, func(p string) bool { return host.Within(r.Path(c), p) })
	})
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

// showLayer prints what would change in the trees of a layer, or the difference at paths.
func (a *app) showLayer(r *reviewed, at []string) error {
	if at == nil {
		return a.printText(r.List())
	}
	w := bufio.NewWriter(a.stdout)
	for _, p := range at {
		_ = r.below(p).Diff(w) // Flush returns the error
	}
	return writeErr(w.Flush())
}

// writeTar writes an archive to a file, or for - to standard output.
func (a *app) writeTar(r *reviewed, file string) error {
	var left []string
	var err error
	if file == "-" {
		left, err = review.Tar(a.stdout, r.l, r.Changes)
		err = writeErr(err)
	} else {
		left, err = r.tarFile(file)
	}
	if len(left) > 0 {
		a.say.warn("not in the archive: %s", few(each(left, shell.Quote)))
	}
	return err
}

// tarFile writes an archive to a file that must be new.
func (r *reviewed) tarFile(file string) (left []string, _ error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		left, err = review.Tar(f, r.l, r.Changes)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return left, refusal(supervise.CodeFailed, "", "--tar %s: %w", shell.Quote(file), files.Plain(err))
	}
	return left, nil
}
