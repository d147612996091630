package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
)

// auditor writes the audit log of one command. Nil writes nothing.
type auditor struct {
	policy.Audit
	dir   string    // Dir without links
	began time.Time // when the line for the start was written; zero for none
}

// openLog finds the log that the policy asks for, if it does. It is given up where
// another user's link leads there, or one that a command may have put there: it would
// have zsbx write where that can't itself. Nothing is written yet.
func (c *prepared) openLog() error {
	log, err := c.policy.AuditLog(c.host)
	if err != nil || log == nil {
		return coded(err)
	}
	to := c.host.Follow(log.Dir.Value)
	c.log = &auditor{Audit: *log, dir: to.Path}
	return c.log.failed(c, c.planted(&to))
}

// failed is for an error a warning, after which nothing more is written, or a refusal
// where the log is required.
func (l *auditor) failed(c *prepared, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("the audit log in %s can't be written: %w", shell.Quote(l.Dir.Value), err)
	if c.log = nil; l.Required.Value == "true" {
		return &Error{Code: CodeAudit, Err: err}
	}
	c.warn(Warning{Text: err.Error()})
	return nil
}

// append writes a line.
func (l *auditor) append(c *Command, line AuditLine) error {
	line.Time, line.Session = time.Now(), c.s.ID()
	keep, _ := strconv.ParseInt(l.Keep.Value, 0, 32)
	err := appendLine(l.dir, int(keep), &line)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeSelf(&c.host, l.dir); err == nil {
			err = appendLine(l.dir, int(keep), &line)
		}
	}
	return l.failed(c.prepared, err)
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
	l.began = time.Now()
	return l.append(c, AuditLine{Event: "start", AuditStart: b})
}

// end tells how the session ended; r is nil for a command that did not start, status 125. The
// error is ended, and what went wrong here.
func (l *auditor) end(c *Command, r *Result, ended error) error {
	if l == nil || l.began.IsZero() {
		return ended
	}
	e := &AuditEnd{Status: 125, DurationMS: time.Since(l.began).Milliseconds(), TimedOut: c.timedOut.Load(), OutputBytes: c.files.Written()}
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
	return errors.Join(ended, l.append(c, AuditLine{Event: "end", AuditEnd: e}))
}
