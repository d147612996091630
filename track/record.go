package track

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// recordVersion is the format that this package writes. A later version may
// add fields without raising it: readers keep what they do not know. It is
// raised when an old reader would misunderstand a new record.
const recordVersion = 1

const (
	maxRecord = 64 << 10 // bytes; a longer file was not written by us
	maxArgv   = 4 << 10  // bytes of argv kept in a record
	maxArgs   = 64       // arguments kept in a record
)

// ErrNewer says that a record was written by a later version of this package
// in a format that this one would misread.
var ErrNewer = errors.New("the session was recorded by a newer version of zsbx")

// ProcID identifies one process for as long as its machine is not restarted.
type ProcID struct {
	Pid   int    `json:"pid"`
	Start uint64 `json:"start"` // start time in clock ticks since boot, field 22 of /proc/PID/stat (proc_pid_stat(5)); microseconds on macOS
}

// IsZero reports whether p names no process.
func (p ProcID) IsZero() bool { return p.Pid == 0 }

// CgroupRef is a control group that holds a session.
type CgroupRef struct {
	Path  string `json:"path"`           // its directory, absolute
	Inode uint64 `json:"inode"`          // of that directory: a later group at the same path is another one
	Unit  string `json:"unit,omitempty"` // the systemd user unit that owns it, or ""
}

// Holder is what holds a session: stored as soon as it is known, in a file of
// its own, for the rest of the record is written before anything runs.
type Holder struct {
	Tracker Kind       `json:"tracker"`
	Keeper  ProcID     `json:"keeper"`           // the keeper, zero without one
	Command ProcID     `json:"command"`          // the command's first process, zero below a keeper, which knows it
	Cgroup  *CgroupRef `json:"cgroup,omitempty"` // the group that holds the session, or nil
}

// Record is what is stored about one session. It is data from a file: nothing
// in it is acted upon before it was compared with the living system.
type Record struct {
	ID    string // a UUID
	Name  string // given by the user, or ""
	Host  string // nodename of the machine, uname(2)
	Boot  string // /proc/sys/kernel/random/boot_id, kern.bootsessionuuid
	PidNS uint64 // inode of the PID namespace that the pids below belong to, 0 where there are none
	UID   int    // effective user of the supervisor

	Supervisor ProcID // the process that began the session

	Argv      []string // the command; may be cut
	ArgvCut   bool     // Argv was cut
	Dir       string   // the command's working directory
	Temp      string   // Options.Temp
	Started   time.Time
	Keep      bool // what the command leaves behind is to go on running
	Exec      bool // the supervisor became the command
	TrackOnly bool // the command is not confined

	extra map[string]json.RawMessage // fields of later versions
}

// jsonRecord is the stored form.
type jsonRecord struct {
	Version    int       `json:"version"`
	ID         string    `json:"id"`
	Name       string    `json:"name,omitempty"`
	Host       string    `json:"host"`
	Boot       string    `json:"boot"`
	PidNS      uint64    `json:"pid_ns,omitempty"`
	UID        int       `json:"uid"`
	Supervisor ProcID    `json:"supervisor"`
	Argv       []string  `json:"argv"`
	ArgvCut    bool      `json:"argv_cut,omitempty"`
	Dir        string    `json:"dir,omitempty"`
	Temp       string    `json:"temp,omitempty"`
	Started    time.Time `json:"started"`
	Keep       bool      `json:"keep,omitempty"`
	Exec       bool      `json:"exec,omitempty"`
	TrackOnly  bool      `json:"track_only,omitempty"`
}

// recordFields are the keys of jsonRecord.
func recordFields() []string {
	return []string{"version", "id", "name", "host", "boot", "pid_ns", "uid",
		"supervisor", "argv", "argv_cut", "dir", "temp", "started", "keep", "exec", "track_only"}
}

// MarshalJSON gives the stored form, the unknown fields of a later version
// included.
func (r *Record) MarshalJSON() ([]byte, error) { return r.encode(), nil }

// UnmarshalJSON reads the stored form and checks it. The error is ErrNewer for
// a record that a later version wrote in a format of its own.
func (r *Record) UnmarshalJSON(b []byte) error {
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	if v.Version > recordVersion {
		return fmt.Errorf("%w (format %d, this one reads %d)", ErrNewer, v.Version, recordVersion)
	}
	var j jsonRecord
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	n := Record{
		ID: j.ID, Name: j.Name, Host: j.Host, Boot: j.Boot, PidNS: j.PidNS, UID: j.UID,
		Supervisor: j.Supervisor, Argv: j.Argv, ArgvCut: j.ArgvCut, Dir: j.Dir, Temp: j.Temp, Started: j.Started,
		Keep: j.Keep, Exec: j.Exec, TrackOnly: j.TrackOnly,
	}
	if err := n.check(v.Version); err != nil {
		return err
	}
	if err := json.Unmarshal(b, &n.extra); err != nil {
		return err
	}
	for _, k := range recordFields() {
		delete(n.extra, k)
	}
	if len(n.extra) == 0 {
		n.extra = nil
	}
	*r = n
	return nil
}

// check refuses what this package would never have written.
func (r *Record) check(version int) error {
	if version < 1 {
		return errors.New("not a session record: no version")
	}
	if id, err := uuid.Parse(r.ID); err != nil || id.String() != r.ID {
		return fmt.Errorf("not a session record: bad id %q", r.ID)
	}
	if r.Name != "" {
		if err := CheckName(r.Name); err != nil {
			return err
		}
	}
	if y := r.Started.UTC().Year(); y < 0 || y > 9999 {
		return fmt.Errorf("not a session record: begun in the year %d", y)
	}
	return r.Supervisor.check()
}

// check refuses numbers that are no pid of a session: 1 is init's, and
// negative ones are groups to kill(2).
func (p ProcID) check() error {
	if p.Pid < 0 || p.Pid == 1 || p.Pid > 1<<30 {
		return fmt.Errorf("not a session record: bad pid %d", p.Pid)
	}
	return nil
}

// parseHolder reads a stored Holder and checks it for session id.
func parseHolder(b []byte, id string) (Holder, error) {
	var h Holder
	if err := json.Unmarshal(b, &h); err != nil {
		return Holder{}, err
	}
	if err := errors.Join(h.Keeper.check(), h.Command.check()); err != nil {
		return Holder{}, err
	}
	if h.Keeper.IsZero() && h.Command.Start == 0 {
		return Holder{}, errors.New("not a session record: it names nothing that holds the session")
	}
	if h.Cgroup != nil && !h.Cgroup.ours(id) {
		return Holder{}, fmt.Errorf("not a session record: the control group %q is not the session's", cut(h.Cgroup.Path, 200))
	}
	return h, nil
}

// CheckName reports whether name can be given to a session: 1 to 64 letters,
// digits, dots, underscores and hyphens, the first a letter or digit, and not
// the form of an id.
func CheckName(name string) error {
	if len(name) == 0 || len(name) > 64 {
		return fmt.Errorf("session name %q: must have 1 to 64 characters", cut(name, 80))
	}
	for i, c := range []byte(name) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '.' && c != '_' && c != '-') {
			return fmt.Errorf("session name %q: only letters, digits, '.', '_' and '-' are allowed, the first a letter or digit", name)
		}
	}
	if _, err := uuid.Parse(name); err == nil {
		return fmt.Errorf("session name %q: looks like a session id", name)
	}
	return nil
}

// cutArgv copies argv as far as a record may hold it.
func cutArgv(argv []string) (kept []string, wasCut bool) {
	left := maxArgv
	kept = make([]string, 0, min(len(argv), maxArgs))
	for _, a := range argv {
		if len(kept) == maxArgs || left <= 0 {
			return kept, true
		}
		if len(a) > left {
			return append(kept, cut(a, left)), true
		}
		left -= len(a) + 1
		kept = append(kept, a)
	}
	return kept, false
}

// cut gives the first n bytes of s at most.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n]
}
