package cmd

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/track"
)

// purge removes what zsbx keeps of this user, with dryRun it only says what. It refuses while there are sessions, or
// layers with something to apply.
func (a *app) purge(st *track.Store, dryRun bool) error {
	layers, err := a.inTheWay(st, dryRun)
	dirs, wrong := supervise.Kept(st)
	if err := errors.Join(err, wrong); err != nil {
		return err
	}
	word := "would remove"
	if !dryRun {
		word = "removed"
		if err := st.Clear(); err != nil {
			return fmt.Errorf("not purged: a session has begun, or there is what is not zsbx's: %w", err)
		}
		for _, x := range layers {
			err = errors.Join(err, drop(x.Layer, false))
		}
		if err != nil {
			return err
		}
		dirs, err = supervise.Purge(dirs)
	}
	t := &table{}
	for _, dir := range dirs {
		t.row(word, dir)
	}
	own := supervise.ConfigDir()
	if _, missing := os.Stat(own); missing == nil {
		t.row("stays", own)
	}
	return errors.Join(err, a.printText(t.String()))
}

// inTheWay returns an error for each session, and for each layer that was not applied. With dryRun a session that
// reap --stale would remove is not in the way. Otherwise all layers are returned.
func (a *app) inTheWay(st *track.Store, dryRun bool) ([]*listed, error) {
	all, orphans, err := st.Survey()
	a.tellOrphans(orphans)
	errs := []error{err}
	for _, i := range all {
		if dryRun && i.Life.Stale() {
			continue
		}
		errs = append(errs, refusal(supervise.CodeSession, "zsbx reap "+i.ID[:shortest],
			"not purged: session %s has not ended (%s)", i.ID, i.Life))
	}
	layers, unread := a.layers()
	for _, x := range layers {
		ofSession := slices.ContainsFunc(all, func(i track.Info) bool { return i.ID == x.Session })
		if x.life != stateApplied && (!ofSession || x.life == track.Ended) {
			id := x.Session[:shortest]
			errs = append(errs, refusal(supervise.CodeSession, "zsbx try apply "+id+"\nzsbx try discard "+id,
				"not purged: layer %s was not applied", x.Session))
		}
	}
	if len(layers) == 0 || errors.Join(errs...) == nil { // else it says the same
		errs = append(errs, unread)
	}
	return layers, errors.Join(errs...)
}
