package cmd

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/terminal"
	"github.com/zsbx/zsbx/internal/track"
)

type reapFlags struct {
	*mistakes

	all, stale, purge, dryRun bool
	wait                      time.Duration
}

func newReap(a *app) *cobra.Command {
	o := &reapFlags{mistakes: &a.mistakes, wait: 10 * time.Second}
	c := command("reap", func(args []string) error { return coded(supervise.CodeSession, o.run(a, args)) })
	c.ValidArgsFunction = completeSessions
	fs := c.Flags()
	fs.BoolVar(&o.all, "all", false, "reap all sessions of this user")
	fs.BoolVar(&o.stale, "stale", false, "reap all sessions that ended or lost their keeper")
	fs.BoolVar(&o.purge, "purge", false, "with --stale, then remove what zsbx keeps of this user")
	fs.BoolVar(&o.dryRun, "dry-run", false, "only say what would be killed, and with --purge removed")
	o.duration(fs, &o.wait, "wait",
		"wait at most the time `D` for each session to end; processes that are left then may be stopped")
	fs.BoolVar(&a.say.json, "json", false, "print JSON")
	return c
}

func (o *reapFlags) run(a *app, refs []string) error {
	o.failIf(o.all && o.stale || (o.all || o.stale) && len(refs) > 0,
		"--all, --stale and sessions can't be used together")
	if o.purge && !o.stale {
		o.errs = append(o.errs, usageHint("zsbx reap --stale --purge", "--purge needs --stale"))
	}
	o.failIf(o.purge && a.say.json, "--purge and --json can't be used together")
	if !o.all && !o.stale && !o.purge && len(refs) == 0 {
		o.errs = append(o.errs, usageHint("zsbx ps", "no session given"))
	}
	if o.errs != nil {
		return errors.Join(o.errs...)
	}
	st, err := openStore()
	if err != nil {
		return err
	}
	ids, err := o.targets(a, st, refs)
	reports, errs := o.each(a, st, ids)
	if o.stale && !o.dryRun {
		sweep(st)
	}
	if err := errors.Join(append(errs, err, o.print(a, reports))...); err != nil {
		return err
	}
	if !o.dryRun && slices.ContainsFunc(reports, func(r reaped) bool { return !r.Done() }) {
		return status(exitNo)
	}
	if o.purge {
		return a.purge(st, o.dryRun)
	}
	return nil
}

// reaped is a report on a session, with what its own zsbx could not tell.
type reaped struct {
	track.Report

	Changes []change `json:"changes"`
}

type change struct {
	Path   string `json:"path"`
	New    bool   `json:"new"`
	Closed bool   `json:"closed"`
}

// tell prints and adds what was not told of an ended session. An error is a warning: it is not
// about the session's processes.
func (r *reaped) tell(a *app, st *track.Store, saying *sync.Mutex) {
	supervise.UntoldOf(st, r.ID, func(u *supervise.Untold) {
		for _, c := range u.Changes {
			r.Changes = append(r.Changes, change{c.Path, c.New, c.Closed})
		}
		saying.Lock()
		defer saying.Unlock()
		a.tellUntold(u)
		if !u.Unread || a.say.unsaid() {
			return
		}
		if err := u.Told(); err != nil {
			a.say.warn("%v", err)
		}
	})
}

func (o *reapFlags) targets(a *app, st *track.Store, refs []string) (ids []string, _ error) {
	var errs []error
	for _, ref := range refs {
		id, err := st.Find(ref)
		errs = append(errs, err)
		if err == nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(refs) > 0 {
		return ids, errors.Join(errs...)
	}
	all, orphans, err := st.Survey()
	for _, i := range all {
		if o.all || i.Life.Stale() {
			ids = append(ids, i.ID)
		}
	}
	notes, unread := st.NotesBut(ids) // those tell theirs when they are reaped
	for _, n := range notes {         // the session may be gone
		if !n.Lives && !slices.Contains(ids, n.ID) {
			ids = append(ids, n.ID)
		}
		n.Close()
	}
	if o.all && !a.say.json {
		a.tellOrphans(orphans)
	}
	if err == nil { // else it says the same
		err = unread
	}
	return ids, err
}

// sweep removes what runs without a session left.
func sweep(st *track.Store) {
	all, err := st.List()
	if err != nil { // an unreadable record may name a directory
		return
	}
	supervise.Sweep(each(all, func(i track.Info) string { return i.Record.Temp }))
}

// each reaps the sessions at the same time, and returns their reports in order. An error with
// one does not stop the others. A session with an error has a report only if something was done.
func (o *reapFlags) each(a *app, st *track.Store, ids []string) (reports []reaped, _ []error) {
	all := make([]reaped, len(ids))
	errs := make([]error, len(ids))
	places := make(chan struct{}, 16) // most of it is waiting for keepers
	var wg sync.WaitGroup
	var saying sync.Mutex
	for n, id := range ids {
		places <- struct{}{}
		wg.Go(func() {
			all[n].Report, errs[n] = o.one(st, id)
			if !o.dryRun && errs[n] == nil {
				all[n].tell(a, st, &saying)
			}
			<-places
		})
	}
	wg.Wait()
	for n, r := range all {
		if errs[n] == nil || r.How != "" || r.Unproved != "" {
			reports = append(reports, r)
		}
	}
	return reports, errs
}

// one reaps a session, or with --dry-run only looks at it. With --all and --stale it is
// no error that a session is already gone.
func (o *reapFlags) one(st *track.Store, id string) (track.Report, error) {
	if o.dryRun {
		i, err := st.Get(id)
		return track.Report{ID: id, Name: i.Record.Name, Tracker: i.Record.Tracker, Survivors: i.Procs}, err
	}
	ctx, cancel := track.WithTimeout(context.Background(), o.wait)
	defer cancel()
	r, err := supervise.Reap(ctx, st, id)
	if errors.Is(err, track.ErrNotFound) && (o.all || o.stale) {
		return track.Report{ID: id, Proof: true, How: "it is gone already", Removed: true}, nil
	}
	return r, err
}

// print prints a line for each report, and one for each process that is left.
func (o *reapFlags) print(a *app, reports []reaped) error {
	t := &table{}
	for i := range reports {
		r := &reports[i]
		what := "killed " + count(r.Killed, "process", "processes")
		word := "left"
		if len(r.Methods) > 0 {
			what += " by " + strings.Join(r.Methods, " and ")
		}
		switch {
		case o.dryRun:
			what = "would kill " + count(len(r.Survivors), "process", "processes")
			word = "would kill"
		case r.Done() && r.Killed == 0:
			what = "nothing was left: " + r.How
		case r.Done():
			what += ", nothing is left: " + r.How
		default:
			what += "; " + r.Unproved
		}
		t.line("%s", strings.TrimRight(r.ID+"  "+terminal.Printable(r.Name), " ")+"  "+what)
		for _, p := range r.Survivors {
			t.row(word, strconv.Itoa(p.Pid), procLine(p))
		}
	}
	return a.show(reports, t)
}
