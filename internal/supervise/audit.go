package supervise

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/object"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/safepath"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/internal/variables"
	"github.com/zsbx/zsbx/policy"
)

// auditor writes the audit log of one command. Nil writes nothing.
type auditor struct {
	policy.Audit
	dir   string    // Dir without links
	began time.Time // when the line for the start was written; zero for none
}

// openLog finds the log that the policy asks for, if any. The log is given up if the path
// goes through another user's link, or one that a command may have put there: zsbx would
// write where they can't write themselves. Nothing is written yet.
func (c *prepared) openLog() error {
	log, err := resolve.AuditLog(c.policy, c.host)
	if err != nil || log == nil {
		return coded(err)
	}
	to := c.host.Way(log.Dir.Value)
	c.log = &auditor{Audit: *log, dir: to.Path}
	return c.log.failed(c, c.planted(to.Path, to.Links))
}

// failed returns a refusal if the log is required. Otherwise it warns, and nothing more
// is written to the log.
func (l *auditor) failed(c *prepared, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("the audit log in %s can't be written: %w", shell.Quote(l.Dir.Value), err)
	c.log = nil
	if l.Required.Value == "true" {
		return &Error{Code: CodeAudit, Err: err}
	}
	c.warn(Warning{Text: err.Error()})
	return nil
}

func (l *auditor) append(c *Command, line AuditLine) error {
	line.Time = time.Now()
	line.Host = hostName()
	line.Session = c.s.ID()
	keep, _ := strconv.ParseInt(l.Keep.Value, 0, 32)
	err := appendLine(l.dir, int(keep), &line)
	if errors.Is(err, fs.ErrNotExist) {
		err = makeZsbxDir(&c.host, l.dir)
		if err == nil {
			err = appendLine(l.dir, int(keep), &line)
		}
	}
	return l.failed(c.prepared, err)
}

// start records that the command is about to run, what enforces its policy, and which
// gaps were accepted, and by what.
func (l *auditor) start(c *Command) error {
	if l == nil {
		return nil
	}
	b := &AuditStart{
		Name:      c.o.Name,
		Dir:       c.host.Dir,
		Policy:    cmp.Or(c.o.Asked, c.policy).Hash(),
		UID:       os.Geteuid(),
		TrackOnly: c.plan == nil,
		InPlace:   c.o.InPlace,
	}
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

// end records how the session ended. r is nil for a command that did not start (status 125).
// The error joins ended and what went wrong here.
func (l *auditor) end(c *Command, r *Result, ended error) error {
	if l == nil || l.began.IsZero() {
		return ended
	}
	e := &AuditEnd{
		Status:      125,
		DurationMS:  time.Since(l.began).Milliseconds(),
		TimedOut:    c.timedOut.Load(),
		OutputBytes: c.files.Written(),
	}
	if limit := (*LimitError)(nil); ended != nil && !errors.As(ended, &limit) {
		e.Error = ended.Error()
	}
	if r != nil {
		e.Status = r.ExitCode()
		e.Killed = r.Report.Killed
		e.Kept = r.Report.Kept
		e.Hosts = r.Hosts
		if c.plan != nil {
			e.Refusals = len(c.plan.Refusals().List)
		}
		if r.Status.Signaled() {
			e.Signal = int(r.Status.Signal())
		}
	}
	return errors.Join(ended, l.append(c, AuditLine{Event: "end", AuditEnd: e}))
}

// AuditLine is a line of the audit log, which has two for each session, in one file for
// each day of UTC. What is empty is left out. A session has no end if its command replaced
// the supervisor, or if the supervisor was killed and no later one has told that.
type AuditLine struct {
	Event   string    `json:"event"` // "start", before the command is started or planned anew, or "end"
	Time    time.Time `json:"time"`
	Host    string    `json:"host,omitempty"` // the machine's or container's name; older lines have none
	Session string    `json:"session"`
	*AuditStart
	*AuditEnd
}

type AuditStart struct {
	Name       string   `json:"name,omitempty"`
	Dir        string   `json:"dir"`
	Command    []string `json:"command"` // without what looks like a secret
	CommandCut bool     `json:"command_cut,omitempty"`
	Policy     string   `json:"policy,omitempty"` // hash of what was asked for
	UID        int      `json:"uid"`
	TrackOnly  bool     `json:"track_only,omitempty"` // no limits
	InPlace    bool     `json:"in_place,omitempty"`   // the command replaces the supervisor
	Layers     []string `json:"layers"`               // what enforces the policy, all of it, if the command ran
	Gaps       []string `json:"gaps"`                 // accepted promises that can't be kept: "name (by whom)"
}

type AuditEnd struct {
	Status      int       `json:"status"`           // zsbx's exit status
	Error       string    `json:"error,omitempty"`  // why the command did not run, or what failed after it
	Signal      int       `json:"signal,omitempty"` // that ended the command
	TimedOut    bool      `json:"timed_out,omitempty"`
	DurationMS  int64     `json:"duration_ms"`            // by a monotonic clock
	OutputBytes int64     `json:"output_bytes,omitempty"` // if the output is limited
	Refusals    int       `json:"refusals,omitempty"`     // how many refusals were recorded
	Killed      int       `json:"ended"`                  // processes that were ended with the session
	Kept        bool      `json:"kept,omitempty"`         // some were left running
	Hosts       []HostUse `json:"hosts,omitempty"`        // that were connected to or refused, at most 200
	Late        bool      `json:"late,omitempty"`         // written by a later zsbx; the duration is until then
}

// hostName returns the machine's name, or "" if the kernel does not tell it.
func hostName() string {
	name, _ := os.Hostname()
	return name
}

// appendLine writes one line, by one write(2) at the end of the day's file, so that
// concurrent runs don't mix theirs. The directory must exist, and no link is followed. A
// missing file is made, for the user alone. The first line of a day removes the files
// that are older than keep days; 0 keeps all.
func appendLine(dir string, keep int, l *AuditLine) error {
	if err := safepath.OnlyMine(dir); err != nil {
		return err
	}
	day := l.Time.UTC()
	name := filepath.Join(dir, day.Format(time.DateOnly)+".jsonl")
	f, err := safepath.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil && !singleFile(st) {
		err = errors.New("the day's file is not a regular file of this user with one name")
	}
	if err != nil {
		return err
	}
	if st.Size() == 0 && keep > 0 {
		oldest := day.AddDate(0, 0, -keep).Format(time.DateOnly)
		names, _ := days(dir) // else they stay, as those that can't be removed
		for _, name := range names {
			if name < oldest {
				_ = os.Remove(filepath.Join(dir, name))
			}
		}
	}
	text := append(object.Of(l), '\n')
	var last [1]byte
	if n, _ := f.ReadAt(last[:], st.Size()-1); n == 1 && last[0] != '\n' {
		text = append([]byte{'\n'}, text...) // a full disk cut off the line before
	}
	_, err = f.Write(text)
	return err
}

// singleFile reports whether a file is a regular one of this user with one name.
func singleFile(st fs.FileInfo) bool {
	return st.Mode().IsRegular() && safepath.OwnedBy(st, os.Geteuid()) && st.Sys().(*syscall.Stat_t).Nlink == 1
}

// days returns the names of a log's files, in order.
func days(dir string) (names []string, _ error) {
	entries, err := os.ReadDir(dir)
	if host.Missing(err) {
		return nil, nil
	}
	for _, e := range entries {
		if is, _ := filepath.Match("[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9].jsonl", e.Name()); is {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// AuditSession is a session in the log. The end may be missing.
type AuditSession struct {
	Session string     `json:"session"`
	Host    string     `json:"host,omitempty"` // of the start
	Start   *AuditLine `json:"start"`
	End     *AuditLine `json:"end,omitempty"`
}

// ReadAudit returns the sessions of a log, in the order in which they began, and how many
// lines could not be read. A day's file may have 1 GiB. Links to the directory are
// followed, those in it are not. A directory that does not exist has no sessions.
func ReadAudit(dir string) (all []*AuditSession, damaged int, err error) {
	dir, err = filepath.EvalSymlinks(dir)
	if err == nil {
		err = safepath.OnlyMine(dir)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, 0, nil
	} else if err != nil {
		return nil, 0, err
	}
	known := map[string]*AuditSession{}
	names, err := days(dir)
	for _, name := range names {
		data := []byte(nil)
		e := safepath.OnlyMine(filepath.Join(dir, name))
		if e == nil {
			data, e = files.Read(filepath.Join(dir, name), 1<<30)
		}
		err = errors.Join(err, e)
		for text := range bytes.FieldsFuncSeq(data, func(r rune) bool { return r == '\n' }) {
			l := &AuditLine{}
			bad := json.Unmarshal(text, l) != nil
			s := known[l.Session]
			empty := l.AuditEnd == nil && l.AuditStart == nil
			if bad || empty || s == nil && l.AuditStart == nil {
				damaged++
				continue
			}
			switch {
			case s == nil:
				s = &AuditSession{Session: l.Session, Host: l.Host, Start: l}
				known[l.Session] = s
				all = append(all, s)
			case l.AuditStart != nil:
				s.Start = l
				s.Host = l.Host
			case s.End == nil || !l.Late:
				s.End = l
			}
		}
	}
	return all, damaged, err
}

// tokens are the beginnings of tokens of well-known services.
var tokens = []string{
	"ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "sk-", "sk_live_", "xox", "AKIA", "ASIA", "eyJ", "npm_", "pypi-",
	"AIza", "hf_",
}

// users are the options that are followed by a user and a password.
var users = []string{"-u", "-U", "--user", "--proxy-user"}

// redact copies the first 16 KiB of a command line without what looks like a secret: an
// argument ends with *** where a secret begins. It can't know every secret.
func redact(argv []string) (out []string, cut bool) {
	left := 16 << 10
	before := ""
	for _, arg := range argv {
		if left <= 0 {
			return out, true
		}
		if len(arg) > left {
			arg = arg[:left]
			cut = true
		}
		left -= len(arg) + 1
		arg, before = hide(arg, before)
		out = append(out, arg)
	}
	return out, cut
}

// hide ends an argument with *** where a secret begins: a token, the value of a variable
// or of a name such as password, a password in a URL or after "-u USER:". before is the
// word before the argument, and last is the argument's last word.
func hide(arg, before string) (hidden, last string) {
	for start := 0; start < len(arg); {
		if end := endOfUser(arg[start:], before); end > 0 {
			return arg[:start+end] + "***", ""
		}
		w := firstWord(arg[start:], before)
		if w.isSecret() {
			return arg[:start] + "***", ""
		}
		end := start + len(w.text)
		if w.beginsURL() {
			if w.isURLWithPassword() {
				return arg[:end] + "://***", ""
			}
		} else if w.namesSecret() {
			return arg[:end+1] + "***", ""
		}
		start = end + 1
		before = w.name
	}
	return arg, before
}

// endOfUser returns where the password begins in "USER:PASSWORD" after an option such as -u, or
// 0. USER may be an address.
func endOfUser(text, before string) int {
	if !slices.Contains(users, before) {
		return 0
	}
	i := strings.IndexAny(text, ": \t\r\n")
	if i < 0 || text[i] != ':' {
		return 0
	}
	return i + 1
}

// word is a word of an argument, with what surrounds it.
type word struct {
	text   string
	before string // the word before it
	rest   string // what follows, which begins with what ends the word
	name   string // the word, or the one before it if it is empty
}

func firstWord(text, before string) word {
	w := word{text: text, before: before}
	if i := strings.IndexAny(text, " \t\r\n;|&()<>`\"'$\\{},/?@=:"); i >= 0 {
		w.text = text[:i]
		w.rest = text[i:]
	}
	w.name = cmp.Or(w.text, before)
	return w
}

// isSecret reports whether the word is a token, or follows an option such as --password.
func (w *word) isSecret() bool {
	option := strings.HasPrefix(w.text, "-")
	if w.text != "" && !option && strings.HasPrefix(w.before, "-") && variables.IsSecret(w.before) {
		return true
	}
	begins := func(token string) bool { return strings.HasPrefix(w.text, token) }
	return len(w.text) >= 16 && slices.ContainsFunc(tokens, begins)
}

// beginsURL reports whether the word is a URL's scheme.
func (w *word) beginsURL() bool { return strings.HasPrefix(w.rest, "://") }

// isURLWithPassword reports whether the URL has a password, which may contain what ends a word:
// / ? # ,
func (w *word) isURLWithPassword() bool {
	url := w.rest[:strings.IndexAny(w.rest+" ", " \t\r\n")]
	const from = len("://")
	user := url[from:max(strings.LastIndexByte(url, '@'), from)]
	return strings.Contains(user, ":") || variables.HasURLPassword(w.text+w.rest)
}

// namesSecret reports whether what follows is the value of a variable, or of a name such as
// password.
func (w *word) namesSecret() bool {
	if w.rest == "" || w.rest[0] != '=' && w.rest[0] != ':' {
		return false
	}
	if variables.IsSecret(w.name) || strings.EqualFold(w.name, "pwd") {
		return true
	}
	variable := w.name != "" && !strings.HasPrefix(w.name, "-") && w.name == strings.ToUpper(w.name)
	return variable && w.rest[0] == '='
}
