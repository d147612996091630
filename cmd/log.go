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

	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/units"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/compose"
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
	from, err := time.ParseInLocation(time.DateOnly, since, time.Local)
	if span, notSpan := units.ParseTime(since); notSpan == nil {
		from = time.Now().Add(-span)
	} else if err != nil && since != "" {
		return usageHint("", "--since %s: must be a time span such as 90m, or a day such as 2026-01-31",
			shell.Quote(since))
	}
	h, err := policy.HostIn("")
	if err != nil {
		return err
	}
	if err := compose.CheckVariables(&h); err != nil {
		return err
	}
	_, user, err := compose.UserPolicy(&h)
	if err != nil {
		return err
	}
	// The log is in its usual place, unless the user's policy or --audit names another.
	p := policy.Merge(&policy.Policy{Audit: policy.Audit{Keep: policy.Named{Value: "0"}}}, user,
		&policy.Policy{Audit: policy.Audit{Dir: policy.Named{Value: audit}}})
	log, err := p.AuditLog(h)
	if err != nil {
		return err
	}
	all, damaged, err := supervise.ReadAudit(log.Dir.Value)
	if damaged > 0 {
		a.say.warn("%s of the audit log can't be read", count(damaged, "line", "lines"))
	} else if all == nil && err == nil {
		hint := "zsbx run --audit " + shell.Quote(log.Dir.Value) + " -- true"
		if _, err := os.Stat(log.Dir.Value + "/."); errors.Is(err, syscall.ENOTDIR) {
			hint = ""
		}
		return refusal(supervise.CodeAudit, hint, "no audit log can be read in %s", log.Dir.Value)
	}
	is := func(s *supervise.AuditSession, id string) bool {
		return id != "" && (id == s.Start.Name || strings.HasPrefix(s.Session, id))
	}
	errs := []error{coded(supervise.CodeAudit, err)}
	for _, id := range ids {
		if err == nil && !slices.ContainsFunc(all, func(s *supervise.AuditSession) bool { return is(s, id) }) {
			errs = append(errs, refusal(supervise.CodeSession, "zsbx log --audit "+shell.Quote(log.Dir.Value),
				"session %.80q is not in the audit log in %s", id, log.Dir.Value))
		}
	}
	below, _ := policy.Absolute(dir)             // there is a working directory: HostIn found it
	below = string([]rune(h.Follow(below).Path)) // encoding/json reads a byte that is not UTF-8 as U+FFFD
	all = slices.DeleteFunc(all, func(s *supervise.AuditSession) bool {
		return cmp.Or(s.End, s.Start).Time.Before(from) || dir != "" && !policy.Within(s.Start.Dir, below) ||
			len(ids) > 0 && !slices.ContainsFunc(ids, func(id string) bool { return is(s, id) })
	})
	t := &table{}
	for _, s := range all {
		t.row(sessionRow(s)...)
	}
	return errors.Join(append(errs, a.show(all, t))...)
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
