package cmd

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/internal/compose"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/units"
	"github.com/zsbx/zsbx/policy"
)

func newLog(a *app) *cobra.Command {
	var audit, dir, since string
	c := command("log", func(args []string) error {
		return coded(supervise.CodePolicy, a.log(args, audit, dir, since))
	})
	f := c.Flags()
	f.StringVar(&audit, "audit", "", "read the log in `DIR`")
	f.StringVar(&since, "since", "",
		"leave out what ended before `TIME`: a time span before now such as 90m, or a day such as 2026-01-31")
	f.StringVar(&dir, "dir", "", "list only what ran in `DIR`, or below")
	f.BoolVar(&a.say.json, "json", false, "print JSON")
	return c
}

func (a *app) log(ids []string, audit, dir, since string) error {
	isPath := func(id string) bool { return id == "." || id == ".." || strings.Contains(id, "/") }
	if i := slices.IndexFunc(ids, isPath); i >= 0 {
		return usageHint("zsbx log --help",
			"%s is not a session: --dir lists what ran there, --audit reads the log there", shell.Quote(ids[i]))
	}
	from, err := sinceWhen(since)
	if err != nil {
		return err
	}
	h, err := host.HostIn("")
	if err != nil {
		return err
	}
	log, err := auditDir(&h, audit)
	if err != nil {
		return err
	}
	all, damaged, err := supervise.ReadAudit(log)
	if damaged > 0 {
		a.say.warn("%s of the audit log can't be read", count(damaged, "line", "lines"))
	} else if all == nil && err == nil {
		return noAudit(log)
	}
	is := func(s *supervise.AuditSession, id string) bool {
		return id != "" && (id == s.Start.Name || strings.HasPrefix(s.Session, id))
	}
	errs := []error{coded(supervise.CodeAudit, err)}
	for _, id := range ids {
		if err == nil && !slices.ContainsFunc(all, func(s *supervise.AuditSession) bool { return is(s, id) }) {
			errs = append(errs, refusal(supervise.CodeSession, "zsbx log --audit "+shell.Quote(log),
				"session %.80q is not in the audit log in %s", id, log))
		}
	}
	below, _ := host.Absolute(dir)            // there is a working directory: HostIn found it
	below = string([]rune(h.Way(below).Path)) // encoding/json reads a byte that is not UTF-8 as U+FFFD
	all = slices.DeleteFunc(all, func(s *supervise.AuditSession) bool {
		early := cmp.Or(s.End, s.Start).Time.Before(from)
		elsewhere := dir != "" && !host.Within(s.Start.Dir, below)
		other := len(ids) > 0 && !slices.ContainsFunc(ids, func(id string) bool { return is(s, id) })
		return early || elsewhere || other
	})
	t := &table{}
	for _, s := range all {
		t.row(sessionRow(s)...)
	}
	return errors.Join(append(errs, a.show(all, t))...)
}

// sinceWhen reads the value of --since. "" is the beginning of time.
func sinceWhen(since string) (time.Time, error) {
	if since == "" {
		return time.Time{}, nil
	}
	if span, err := units.ParseTime(since); err == nil {
		return time.Now().Add(-span), nil
	}
	day, err := time.ParseInLocation(time.DateOnly, since, time.Local)
	if err != nil {
		return day, usageHint("", "--since %s: must be a time span such as 90m, or a day such as 2026-01-31",
			shell.Quote(since))
	}
	return day, nil
}

// auditDir returns the directory of the log: the one that --audit names, or the user's policy, or
// the usual one.
func auditDir(h *host.Host, flag string) (string, error) {
	if err := compose.CheckVariables(h); err != nil {
		return "", err
	}
	_, user, err := compose.UserPolicy(h)
	if err != nil {
		return "", err
	}
	usual := &policy.Policy{Audit: policy.Audit{Keep: policy.Named{Value: "0"}}}
	asked := &policy.Policy{Audit: policy.Audit{Dir: policy.Named{Value: flag}}}
	log, err := resolve.AuditLog(policy.Merge(usual, user, asked), *h)
	if err != nil {
		return "", err
	}
	return log.Dir.Value, nil
}

// noAudit returns the error for a directory without a log.
func noAudit(dir string) error {
	hint := "zsbx run --audit " + shell.Quote(dir) + " -- true"
	if _, err := os.Stat(dir + "/."); errors.Is(err, syscall.ENOTDIR) {
		hint = ""
	}
	return refusal(supervise.CodeAudit, hint, "no audit log can be read in %s", dir)
}

func sessionRow(s *supervise.AuditSession) []string {
	b := s.Start
	how := "no end"
	took := ""
	if b.InPlace {
		how = "in place"
	}
	if e := s.End; e != nil {
		took = (time.Duration(e.DurationMS) * time.Millisecond).String()
		how = strconv.Itoa(e.Status)
		switch {
		case e.TimedOut:
			how = "timed out"
		case e.Error != "":
			how += ", " + e.Error
		}
	}
	when := b.Time.Local().Format(time.DateTime)
	id := s.Session[:min(shortest, len(s.Session))]
	return []string{when, id, took, b.Dir, commandLine(b.Command), how}
}
