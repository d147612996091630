package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/guard"
	"github.com/zsbx/zsbx/policy/shell"
)

// GuardHint is what to type where the guard refuses what is meant.
const GuardHint = "--guard off"

// CheckArgs says whether the guard of a policy refuses a command line: an *Error
// around a *guard.Refusal, or policy.Errors for lists that are not known.
func CheckArgs(p *policy.Policy, h *policy.Host, args []string) error {
	err := guard.Check(p.GuardOn(h.OS), h.Home, h.Dir, args)
	if refusal := (*guard.Refusal)(nil); errors.As(err, &refusal) {
		return &Error{Code: CodeGuard, Hint: GuardHint, Err: err}
	}
	return err
}

// auditor writes the audit log of one command. Nil writes nothing.
type auditor struct {
	policy.AuditLog
	real   string // Dir without links
	opened time.Time
	begun  bool // there is a line for the start
}

// openLog finds the log that the policy asks for, if it does. It is given up where
// another user's link leads there, or one that a command may have put there: it would
// have zsbx write where that can't itself. Nothing is written yet, but the directory
// may be made from here on.
func (c *prepared) openLog(r *policy.Resolved) error {
	log, err := c.policy.AuditLog(c.host)
	if err != nil || log == nil {
		return coded(err)
	}
	to := c.host.Follow(log.Dir)
	c.log = &auditor{AuditLog: *log, real: to.Path, opened: time.Now()}
	for _, link := range to.Links {
		if st, err := os.Lstat(link); err == nil && !ownedByMe(st) && !ownedBy(st, 0) {
			return c.log.failed(c, fmt.Errorf("%s is another user's link", link))
		}
	}
	if link := r.PlantedLink(&to); link != "" {
		return c.log.failed(c, fmt.Errorf("the link %s leads to %s, and a command may have put it there", link, to.Path))
	}
	return nil
}

// failed is a warning, after which nothing more is written, or a refusal where
// the log is required.
func (l *auditor) failed(c *prepared, err error) error {
	err = fmt.Errorf("the audit log in %s can't be written: %w", shell.Quote(l.Dir), err)
	if c.log = nil; l.Required {
		return &Error{Code: CodeAudit, Err: err}
	}
	c.warn.warn(Warning{Text: err.Error()})
	return nil
}

// append writes a line. A home directory that does not exist is not made.
func (l *auditor) append(c *Command, line AuditLine) error {
	line.Time, line.Session = time.Now(), c.s.ID()
	err := appendLine(l.real, l.Keep, &line)
	if errors.Is(err, fs.ErrNotExist) {
		home := ""
		if policy.Within(l.Dir, c.host.Home) {
			home = c.host.Home
		}
		if err = makeSelf(l.real, home); err == nil {
			err = appendLine(l.real, l.Keep, &line)
		}
	}
	if err != nil {
		return l.failed(c.prepared, err)
	}
	return nil
}

// start tells that the command is about to run, what enforces its policy, and
// which gaps were accepted by whom.
func (l *auditor) start(c *Command) error {
	if l == nil {
		return nil
	}
	b := &AuditStart{Name: c.o.Name, Dir: c.host.Dir, Policy: cmp.Or(c.o.Asked, c.policy).Hash(), UID: os.Geteuid(), TrackOnly: c.plan == nil, InPlace: c.o.InPlace}
	b.Command, b.CommandCut = redact(c.o.Args)
	if c.plan != nil {
		for _, layer := range c.plan.Layers() {
			b.Layers = append(b.Layers, layer.Name)
		}
		for _, g := range c.plan.Gaps {
			by := "by default"
			switch {
			case slices.Contains(c.o.AllowGaps, g.Name):
				by = "--allow-gap"
			case g.Kind == enforce.Core || c.o.Strict:
				by = "--fallback"
			}
			b.Gaps = append(b.Gaps, g.Name+" ("+by+")")
		}
		slices.Sort(b.Gaps)
		b.Gaps = slices.Compact(b.Gaps)
	}
	l.begun = true
	return l.append(c, AuditLine{Event: "start", AuditStart: b})
}

// end tells how the session ended; r is nil for a command that did not start. The
// error is ended, and what went wrong here.
func (l *auditor) end(c *Command, r *Result, ended error) error {
	if l == nil || !l.begun {
		return ended
	}
	const notStarted = 125 // zsbx's status then
	e := &AuditEnd{Status: notStarted, DurationMS: time.Since(l.opened).Milliseconds(), TimedOut: c.timedOut.Load(), OutputBytes: c.files.Written()}
	if limit := (*LimitError)(nil); ended != nil && !errors.As(ended, &limit) {
		e.Error = ended.Error()
	}
	if r != nil {
		e.Status, e.Killed, e.Kept = r.ExitCode(), r.Report.Killed, r.Report.Kept
		if c.plan != nil {
			e.Refusals = len(c.plan.Refusals().List)
		}
		if r.Status.Signaled() {
			e.Signal = int(r.Status.Signal())
		}
	}
	if err := l.append(c, AuditLine{Event: "end", AuditEnd: e}); err != nil {
		return errors.Join(ended, err)
	}
	return ended
}
