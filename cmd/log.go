package cmd

import (
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
	"github.com/zsbx/zsbx/track"
	"github.com/zsbx/zsbx/track/audit"
)

// logFlags are the flags of log.
type logFlags struct {
	audit, dir, since string
	json              bool
}

func newLog(a *app) command {
	o := &logFlags{}
	c := &cobra.Command{
		Use:   "log [flags] [ID|NAME|PREFIX...]",
		Short: "Read the audit log",
		Long: `List what was run, as the audit log has it, in the order in which it began: when,
the session, how it ended, how long it took, where, and the command. With ids,
names or beginnings of ids, list those sessions.

The log is that of the user's policy, or the one of --audit.`,
		Example: `  zsbx log --since 2h
  zsbx log --dir . --since 2026-01-31 --json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return o.run(a, args) },
	}
	f := c.Flags()
	f.StringVar(&o.audit, "audit", "", "read the log in `DIR`")
	f.StringVar(&o.since, "since", "", "leave out what ended before `TIME`: 90m, 7d, 2026-01-31, or a time of RFC 3339")
	f.StringVar(&o.dir, "dir", "", "only what ran in `DIR`, or below")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return command{Command: c}
}

// logged is a session in the output of log --json.
type logged struct {
	Session string      `json:"session"`
	Start   *audit.Line `json:"start,omitempty"`
	End     *audit.Line `json:"end,omitempty"`
}

func (o *logFlags) run(a *app, ids []string) error {
	since, err := parseSince(o.since, time.Now())
	if err != nil {
		return usageErr("--since %s: %v", shell.Quote(o.since), err)
	}
	dir, err := o.place()
	if err != nil {
		return err
	}
	var all []*logged
	known := map[string]*logged{}
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
	all = slices.DeleteFunc(all, func(s *logged) bool { return !o.wants(s, since, ids) })
	if o.json {
		return errors.Join(a.printJSON(append([]*logged{}, all...)), coded(codeAudit, err))
	}
	t := &table{}
	for _, s := range all {
		t.row(s.row()...)
	}
	var b strings.Builder
	t.write(&b)
	return errors.Join(a.printText(b.String()), coded(codeAudit, err))
}

// place is the directory of the log.
func (o *logFlags) place() (string, error) {
	h, err := policy.HostIn("")
	if err != nil {
		return "", err
	}
	p, err := compose.UserPolicy(&h)
	if o.audit != "" {
		p, err = &policy.Policy{}, nil
		p.Audit.Dir.Value = o.audit
	}
	var log *policy.AuditLog
	if p != nil && err == nil {
		log, err = p.AuditLog(h)
	}
	if log == nil && err == nil {
		p = &policy.Policy{}
		p.Audit.Dir.Value = policy.DefaultAuditDir
		log, err = p.AuditLog(h)
	}
	if err != nil {
		return "", coded(codePolicy, err)
	}
	if o.dir != "" {
		if o.dir, err = filepath.Abs(o.dir); err == nil {
			if real, e := filepath.EvalSymlinks(o.dir); e == nil {
				o.dir = real
			}
		}
	}
	return log.Dir, err
}

// wants tells the sessions that were asked for.
func (o *logFlags) wants(s *logged, since time.Time, ids []string) bool {
	last, name, dir := s.End, "", ""
	if s.Start != nil {
		if name, dir = s.Start.Name, s.Start.Dir; last == nil {
			last = s.Start
		}
	}
	return !last.Time.Before(since) && (o.dir == "" || dir != "" && policy.Within(dir, o.dir)) &&
		(len(ids) == 0 || slices.ContainsFunc(ids, func(id string) bool { return id != "" && (id == name || strings.HasPrefix(s.Session, id)) }))
}

// row is a session for people.
func (s *logged) row() []string {
	when, dir, command, how, took := "?", "?", "?", "no end", ""
	if s.Start != nil {
		when, dir, command = s.Start.Time.Local().Format("2006-01-02 15:04:05"), s.Start.Dir, track.CommandLine(s.Start.Command, widestCommand)
		if s.Start.InPlace {
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
	return []string{when, s.Session[:min(8, len(s.Session))], took, dir, command, how}
}

// parseSince reads a span before now, in days too, a day, or a time.
func parseSince(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}
	if t, err := time.ParseInLocation(time.DateOnly, s, now.Location()); err == nil {
		return t, nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	d, err := policy.ParseTime(s)
	if err != nil {
		return now, errors.New("a time span such as 90m or 7d, a day such as 2026-01-31, or a time of RFC 3339 is needed")
	}
	return now.Add(-d), nil
}
