package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/compose"
	"github.com/zsbx/zsbx/policy/shell"
	"github.com/zsbx/zsbx/policy/units"
	"github.com/zsbx/zsbx/track/audit"
)

// logFlags are the flags of log.
type logFlags struct {
	audit, dir, since string
}

func newLog(a *app) command {
	o := &logFlags{}
	c := &cobra.Command{
		Use:   "log [flags] [ID|NAME|PREFIX...]",
		Short: "Read the audit log",
		Long: `List what was run, as the audit log has it, in the order in which it began: when,
the session, how long it took, where, the command, and how it ended. With ids,
names or beginnings of ids, list those sessions.

The log is that of the user's policy, or the one of --audit.`,
		Example: `  zsbx log --since 2h
  zsbx log --dir . --since 2026-01-31 --json`,
		RunE: func(_ *cobra.Command, args []string) error { return o.run(a, args) },
	}
	f := c.Flags()
	f.StringVar(&o.audit, "audit", "", "read the log in `DIR`")
	f.StringVar(&o.since, "since", "", "leave out what ended before `TIME`: 90m ago, or a day such as 2026-01-31")
	f.StringVar(&o.dir, "dir", "", "only what ran in `DIR`, or below")
	f.BoolVar(&a.say.json, "json", false, "print JSON")
	return command{Command: c}
}

// logged is a session in the output of log --json.
type logged struct {
	Session string      `json:"session"`
	Start   *audit.Line `json:"start,omitempty"`
	End     *audit.Line `json:"end,omitempty"`
}

func (o *logFlags) run(a *app, ids []string) error {
	since, err := time.ParseInLocation(time.DateOnly, o.since, time.Local)
	if err != nil && o.since != "" {
		span, err := units.ParseTime(o.since)
		if err != nil {
			return usageErr("--since %s: a time span such as 90m, or a day such as 2026-01-31, is needed", shell.Quote(o.since))
		}
		since = time.Now().Add(-span)
	}
	dir, err := o.place()
	if err != nil {
		return coded(codePolicy, err)
	}
	all, known := []*logged{}, map[string]*logged{}
	damaged, err := audit.Read(dir, func(l *audit.Line) {
		s := known[l.Session]
		if s == nil {
			s = &logged{Session: l.Session}
			known[l.Session], all = s, append(all, s)
		}
		if l.Began != nil {
			s.Start = l
		} else {
			s.End = l
		}
	})
	if errors.Is(err, fs.ErrNotExist) && len(all) == 0 {
		return &failure{code: codeAudit, status: exitFailed, hint: "zsbx run --audit " + shell.Quote(dir) + " ...", err: fmt.Errorf("there is no audit log in %s", dir)}
	}
	if damaged > 0 {
		a.say.warn("%s of the audit log can't be read", count(damaged, "line", "lines"))
	}
	all = slices.DeleteFunc(all, func(s *logged) bool {
		last, began := cmp.Or(s.End, s.Start), &audit.Began{}
		if s.Start != nil {
			began = s.Start.Began
		}
		return last.Time.Before(since) || o.dir != "" && (began.Dir == "" || !policy.Within(began.Dir, o.dir)) ||
			len(ids) > 0 && !slices.ContainsFunc(ids, func(id string) bool { return id != "" && (id == began.Name || strings.HasPrefix(s.Session, id)) })
	})
	if a.say.json {
		return errors.Join(a.printJSON(all), coded(codeAudit, err))
	}
	t := &table{}
	for _, s := range all {
		t.row(s.row()...)
	}
	return errors.Join(a.printTable(t), coded(codeAudit, err))
}

// place is the directory of the log. It and the one of --dir become ones without
// links.
func (o *logFlags) place() (string, error) {
	h, err := policy.HostIn("")
	if err != nil {
		return "", err
	}
	if o.dir != "" {
		if !filepath.IsAbs(o.dir) {
			o.dir = filepath.Join(h.Dir, o.dir)
		}
		o.dir = h.Follow(o.dir).Path
	}
	p := &policy.Policy{Audit: policy.Audit{Dir: policy.Named{Value: o.audit}}}
	if o.audit == "" {
		if p, err = compose.UserPolicy(&h); err != nil {
			return "", err
		}
		p = policy.Merge(&policy.Policy{Audit: policy.Audit{Keep: policy.Named{Value: "0"}}}, p) // there is a log, at the usual place
	}
	log, err := p.AuditLog(h)
	if err != nil {
		return "", err
	}
	return h.Follow(log.Dir).Path, nil
}

// row is a session for people.
func (s *logged) row() []string {
	when, dir, command, how, took := "?", "?", "?", "no end", ""
	if b := s.Start; b != nil {
		when, dir, command = b.Time.Local().Format(time.DateTime), b.Dir, commandLine(b.Command)
		if b.InPlace {
			how = "in place"
		}
	}
	if e := s.End; e != nil {
		took = (time.Duration(e.DurationMS) * time.Millisecond).String()
		switch how = strconv.Itoa(e.Status); {
		case e.TimedOut:
			how = "timed out"
		case e.Signal != 0:
			how = syscall.Signal(e.Signal).String()
		case e.Error != "":
			how += ", " + e.Error
		}
	}
	return []string{when, s.Session[:min(shortest, len(s.Session))], took, dir, command, how}
}
