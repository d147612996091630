package cmd

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/layer/apply"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/track"
	"github.com/zsbx/zsbx/internal/units"
)

func newTryDiscard(a *app) *cobra.Command {
	older := time.Duration(-1)
	var force bool
	c := commandBelow("discard", func(refs []string) error { return a.discardTry(refs, older, force) })
	c.ValidArgsFunction = completeLayers
	fs := c.Flags()
	a.flag(fs, "older", "string", "", "throw away all layers that are older than the time `D`, such as 7d or 12h",
		func(s string) (err error) {
			older, err = parseDays(s)
			return err
		})
	fs.BoolVar(&force, "force", false,
		"throw a layer away although an apply of it has not ended, or its journal can't be read: "+
			"what that has changed so far stays")
	fs.BoolVar(&a.say.json, "json", false, "print JSON")
	return c
}

// parseDays reads a time that may be in days.
func parseDays(s string) (d time.Duration, err error) {
	const mostDays = 100_000
	if days, is := strings.CutSuffix(s, "d"); is {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 64)
		d = time.Duration(min(n, mostDays)) * 24 * time.Hour
	} else {
		d, err = units.ParseTime(s)
	}
	if err != nil {
		return 0, errors.New("a time is a number of days such as 7d, or a time such as 12h or 90m")
	}
	return d, nil
}

// discardTry throws layers away: those that are older than a time, if that is not negative, else those that are named.
func (a *app) discardTry(refs []string, older time.Duration, force bool) error {
	a.failIf(older >= 0 && len(refs) > 0, "--older and layers can't be used together")
	if older < 0 {
		a.needLayer(refs)
	}
	if a.errs != nil {
		return errors.Join(a.errs...)
	}
	all, err := findLayers(refs)
	if older >= 0 {
		all, err = olderLayers(older)
	}
	errs := []error{err}
	t := &table{}
	var gone []string
	for _, l := range all {
		if err := discard(l, force); err != nil {
			errs = append(errs, err)
			continue
		}
		gone = append(gone, l.Session)
		t.line("%s  thrown away", l.Session)
	}
	return errors.Join(append(errs, a.show(map[string]any{"discarded": gone}, t))...)
}

// olderLayers returns the layers that are older than d and whose sessions have ended.
func olderLayers(d time.Duration) (old []*layer.Layer, _ error) {
	all, err := layer.All(supervise.LayerState())
	lives, unread := supervise.Lives()
	for _, l := range all {
		if time.Since(l.Began) > d && (lives[l.Session] == "" || lives[l.Session] == track.Ended) {
			old = append(old, l)
		}
	}
	return old, errors.Join(err, unread)
}

// discard throws a layer away, once its session can't write to it any more.
func discard(l *layer.Layer, force bool) error {
	if err := supervise.Over(l); err != nil {
		return err
	}
	return drop(l, force)
}

// drop throws a layer away. What was applied of it stays, and can't be taken back any more. Only with force an
// apply need not have ended, and the journal need not be readable.
func drop(l *layer.Layer, force bool) error {
	if l.Damage != nil {
		return l.Remove()
	}
	id := l.Session[:shortest]
	pending, unread := apply.Pending(l)
	if unread != nil && !force {
		return refusal(supervise.CodeSession, "zsbx try discard "+id+" --force",
			"%w; without it, what an apply has replaced or removed is lost once the layer is thrown away, "+
				"and directories .zsbx-try-%s-N may be left in %s",
			unread, l.Session, quoteArgs(each(l.Trees, treePath)))
	}
	if pending && !force {
		return refusal(supervise.CodeSession,
			"zsbx try apply "+id+"\nzsbx try apply "+id+" --undo\nzsbx try discard "+id+" --force",
			"an apply of layer %s has not ended", l.Session)
	}
	if err := apply.Drop(l, force); err != nil {
		return err
	}
	return l.Remove()
}
