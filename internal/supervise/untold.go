package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/object"
	"github.com/zsbx/zsbx/internal/track"
)

// This process may be killed before it tells what the command changed. So a note next to the
// session's record has all that it would need, before the command begins. The next run in the
// same directory tells it, and so does Reap.

// noteFormat changes whenever an older reader would misunderstand the rest.
const noteFormat = 2

// note is what a track.Note has, as JSON.
type note struct {
	Format   int    `json:"format"`
	Began    int64  `json:"began"`              // in nanoseconds since 1970
	Log      string `json:"log,omitempty"`      // the audit log's directory, quoted as Go does; "" for none
	Keep     int    `json:"keep,omitempty"`     // for how many days the log is kept
	Snapshot text   `json:"snapshot,omitempty"` // nil for a command that was only tracked
	Kept     bool   `json:"kept,omitempty"`     // the command ended, and that was reported; processes ran on
	Unsaid   bool   `json:"unsaid,omitempty"`   // the command ended, but that could not be reported
}

// text is JSON: package object writes it as it is.
type text []byte

func (t *text) UnmarshalJSON(b []byte) error {
	*t = append((*t)[:0], b...)
	return nil
}

// noteInTime stores the note while the keeper gets ready. No command runs without it.
func (c *Command) noteInTime(cmd *fork.Command) {
	if c.o.InPlace || c.before == nil && c.log == nil {
		return
	}
	cmd.Commit = append(cmd.Commit, func(*fork.Process) error {
		n := note{Format: noteFormat, Began: time.Now().UnixNano()}
		if c.log != nil {
			n.Log = strconv.Quote(c.log.dir)
			n.Keep, _ = strconv.Atoi(c.log.Keep.Value)
		}
		if c.before != nil {
			n.Snapshot = c.before.Save()
		}
		c.note = n
		if err := c.s.Note(c.host.Dir, object.Of(&n)); err != nil {
			return fmt.Errorf("recording what to report at the end: %w", err)
		}
		return nil
	})
}

// Told says that the Result was reported. Until then another process may have to do so. What a
// kept session changes later is left for others to tell.
func (c *Command) Told() {
	if c.kept {
		c.note.Kept = true
		c.leaveNote("what the session changes from now on can't be reported")
		return
	}
	c.s.Told()
}

// Unsaid says that the Result could not be reported, so that another process does it.
func (c *Command) Unsaid() {
	c.note.Unsaid = true
	c.leaveNote("what the command changed can't be reported later")
}

// leaveNote leaves the note for others to tell.
func (c *Command) leaveNote(failed string) {
	if c.note.Snapshot == nil {
		c.s.Told()
		return
	}
	c.note.Log = "" // the log has its end
	if err := c.s.LeaveNote(c.host.Dir, object.Of(&c.note)); err != nil {
		c.warn(Warning{Text: fmt.Sprintf("%s: %v", failed, err)})
	}
}

// Untold is what a command changed whose own zsbx was killed before it could say so, or what
// changed since the command of a kept session was started. Whoever gets one reports it, and then
// calls Told.
type Untold struct {
	Session string
	Kept    bool             // nothing was killed: what the command itself changed was told
	Unsaid  bool             // nothing was killed, but what the command changed could not be said
	Lives   bool             // the session has not ended; the rest is told when it has
	Unread  bool             // the note can't be read, so what it says is not known
	Changes []enforce.Change // since it was started
	Err     error            // why the changes can't be told

	in   note
	note *track.Note // what Told removes; nil for nothing
}

// tellEarlier warns about commands that ran in the same directory and whose zsbx was killed.
func (c *prepared) tellEarlier() {
	st, err := track.OpenStore()
	if err != nil {
		return // beginSession says why
	}
	notes, err := st.Notes(c.host.Dir)
	if err != nil {
		c.warn(Warning{Text: fmt.Sprintf("what earlier sessions changed can't be told: %v", err)})
	}
	for _, n := range notes {
		u := lookInto(n, &c.host)
		err = nil
		if u.Err != nil || len(u.Changes) > 0 {
			c.warn(Warning{Untold: u})
		} else {
			err = u.Told()
		}
		n.Close()
		if err != nil {
			c.warn(Warning{Text: err.Error()})
		}
	}
}

// UntoldOf calls tell for each thing that was not told of a session that was ended.
func UntoldOf(st *track.Store, id string, tell func(*Untold)) {
	h, err := host.ThisHost()
	if err != nil { // the working directory is gone
		h, err = host.HostIn("/")
	}
	notes, unread := st.NotesOf(id)
	if unread != nil {
		tell(&Untold{Session: id, Unread: true, Err: unread})
	}
	for _, n := range notes {
		if err != nil {
			tell(&Untold{Session: id, Err: err})
		} else {
			tell(lookInto(n, &h))
		}
		n.Close()
	}
}

// lookInto finds out what changed.
func lookInto(n *track.Note, h *host.Host) *Untold {
	u := &Untold{Session: n.ID, Lives: n.Lives, Unread: n.Err != nil, Err: n.Err, note: n}
	if u.Unread {
		return u
	}
	u.Changes, u.Err = u.in.read(n.Text, h)
	u.Kept = u.in.Kept
	u.Unsaid = u.in.Unsaid
	return u
}

// Told says that it was reported, so that nobody reports it again. It writes the end of the
// session to its audit log. While the session lives it does nothing.
func (u *Untold) Told() error {
	if u.note == nil || u.Lives {
		return nil
	}
	err := u.in.endLog(u.note)
	gone := u.note.Remove()
	if !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	u.note = nil
	return err
}

// read reads a note, and returns what changed since it was written.
func (in *note) read(text []byte, h *host.Host) ([]enforce.Change, error) {
	if err := json.Unmarshal(text, in); err != nil {
		return nil, err
	}
	if in.Format != noteFormat {
		return nil, fmt.Errorf("format %d, this version of zsbx reads %d", in.Format, noteFormat)
	}
	if in.Snapshot == nil {
		return nil, nil
	}
	before, err := enforce.LoadSnapshot(in.Snapshot, h)
	if err != nil {
		return nil, err
	}
	return before.Changes(), nil
}

// endLog writes the session's end to the audit log. A note that a command may have written
// names no log.
func (in *note) endLog(n *track.Note) error {
	if in.Log == "" || n.Temp {
		return nil
	}
	dir, err := strconv.Unquote(in.Log)
	if err != nil {
		return err
	}
	e := &AuditEnd{
		Status: exitCode(n.Status), Late: true, Killed: n.Killed,
		Error: "zsbx was killed before the end", DurationMS: time.Since(time.Unix(0, in.Began)).Milliseconds(),
	}
	if n.Status.Signaled() {
		e.Signal = int(n.Status.Signal())
	}
	err = appendLine(dir, in.Keep, &AuditLine{
		Event: "end", Time: time.Now(), Host: hostName(), Session: n.ID, AuditEnd: e,
	})
	if err != nil {
		return fmt.Errorf("the audit log in %s can't be written: %w", dir, err)
	}
	return nil
}
