package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/enforce/sandbox/internal/safepath"
	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/object"
)

// AuditLine is a line of the audit log, which has two for each session, in one file for
// each day of UTC. What is empty is left out. A session that replaces its supervisor has
// no end; nor has one whose supervisor was killed.
type AuditLine struct {
	Event   string    `json:"event"` // "start": before the command is started, again when it has to be planned anew; "end"
	Time    time.Time `json:"time"`
	Session string    `json:"session"`
	*AuditStart
	*AuditEnd
}

// AuditStart is what the line of a start tells.
type AuditStart struct {
	Name       string   `json:"name,omitempty"`
	Dir        string   `json:"dir"`
	Command    []string `json:"command"` // without what looks like a secret
	CommandCut bool     `json:"command_cut,omitempty"`
	Policy     string   `json:"policy,omitempty"` // hash of what was asked for
	UID        int      `json:"uid"`
	TrackOnly  bool     `json:"track_only,omitempty"` // no limits
	InPlace    bool     `json:"in_place,omitempty"`   // the command replaces the supervisor
	Layers     []string `json:"layers"`               // what enforces the policy: the command runs only when the kernel took all of it
	Gaps       []string `json:"gaps"`                 // accepted promises that can't be kept: "name (by whom)"
}

// AuditEnd is what the line of an end tells.
type AuditEnd struct {
	Status      int    `json:"status"`           // zsbx's exit status
	Error       string `json:"error,omitempty"`  // why the command did not run, or what failed after it
	Signal      int    `json:"signal,omitempty"` // that ended the command
	TimedOut    bool   `json:"timed_out,omitempty"`
	DurationMS  int64  `json:"duration_ms"`            // by a clock that never goes back
	OutputBytes int64  `json:"output_bytes,omitempty"` // where zsbx carried the output
	Refusals    int    `json:"refusals,omitempty"`     // what the command was refused, as far as that was recorded
	Killed      int    `json:"ended"`                  // processes that were ended with the session
	Kept        bool   `json:"kept,omitempty"`         // some were left running
}

// appendLine writes one line, by one write(2) at the end of the day's file, so that
// concurrent runs don't mix theirs. The directory has to exist; no link is followed. The
// file is made where it is missing, for the user alone. The first line of a day removes
// the files that are older than keep days; 0 keeps all.
func appendLine(dir string, keep int, l *AuditLine) error {
	if err := safepath.OnlyMine(dir); err != nil {
		return err
	}
	day := l.Time.UTC()
	f, err := safepath.OpenFile(filepath.Join(dir, day.Format(time.DateOnly)+".jsonl"), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil && (!st.Mode().IsRegular() || !safepath.OwnedBy(st, os.Geteuid()) || st.Sys().(*syscall.Stat_t).Nlink != 1) {
		err = errors.New("the day's file is not a regular file of this user with one name")
	}
	if err != nil {
		return err
	}
	if st.Size() == 0 && keep > 0 {
		oldest := day.AddDate(0, 0, -keep).Format(time.DateOnly)
		for _, name := range days(dir) {
			if name < oldest {
				_ = os.Remove(filepath.Join(dir, name))
			}
		}
	}
	text := append(object.Of(l), '\n')
	var last [1]byte
	if n, _ := f.ReadAt(last[:], st.Size()-1); n == 1 && last[0] != '\n' {
		text = append([]byte{'\n'}, text...) // a full disk cut the line before
	}
	_, err = f.Write(text)
	return err
}

// days are the names of a log's files, in their order.
func days(dir string) []string {
	names, _ := fs.Glob(os.DirFS(dir), "[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9].jsonl")
	return names
}

// AuditSession is a session in the log. The end may be missing.
type AuditSession struct {
	Session string     `json:"session"`
	Start   *AuditLine `json:"start"`
	End     *AuditLine `json:"end,omitempty"`
}

// ReadAudit gives the sessions of a log, in the order in which they began, and how many
// lines could not be read; a day may have 1 GiB. Links lead to the directory, not out of it. One that does not
// exist has no sessions.
func ReadAudit(dir string) (all []*AuditSession, damaged int, err error) {
	if dir, err = filepath.EvalSymlinks(dir); err == nil {
		err = safepath.OnlyMine(dir)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, 0, nil
	} else if err != nil {
		return nil, 0, err
	}
	known := map[string]*AuditSession{}
	for _, name := range days(dir) {
		data, e := []byte(nil), safepath.OnlyMine(filepath.Join(dir, name))
		if e == nil {
			data, e = files.Read(filepath.Join(dir, name), 1<<30)
		}
		err = errors.Join(err, e)
		for text := range bytes.FieldsFuncSeq(data, func(r rune) bool { return r == '\n' }) {
			l := &AuditLine{}
			bad := json.Unmarshal(text, l) != nil
			switch s := known[l.Session]; {
			case bad, s == nil && l.AuditStart == nil, l.AuditEnd == nil && l.AuditStart == nil:
				damaged++
			case s == nil:
				s = &AuditSession{Session: l.Session, Start: l}
				known[l.Session], all = s, append(all, s)
			case l.AuditStart != nil:
				s.Start = l
			default:
				s.End = l
			}
		}
	}
	return all, damaged, err
}
