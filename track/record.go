package track

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/zsbx/zsbx/enforce/fingerprint"
	"github.com/zsbx/zsbx/track/internal/cgroup"
	"github.com/zsbx/zsbx/track/internal/proc"
)

// recordVersion is the format that this package writes. A later version may
// add fields without raising it. It is raised when an old reader would
// misunderstand a new record.
const recordVersion = 1

const maxRecord = 64 << 10 // bytes; a longer file was not written by us

// ProcID identifies one process for as long as its machine is not restarted, and
// Proc is what can be seen of it from outside.
type (
	ProcID = proc.ID
	Proc   = proc.Process
)

// Holder is what holds a session.
type Holder struct {
	Tracker Kind          `json:"tracker"`          // "" as long as nothing was started
	Keeper  ProcID        `json:"keeper"`           // the keeper, zero without one
	Command ProcID        `json:"command"`          // the command's first process, zero below a keeper, which knows it
	Cgroup  *cgroup.Group `json:"cgroup,omitempty"` // the group that holds the session, or nil
}

// Record is what is stored about one session. It is data from a file: nothing
// in it is acted upon before it was compared with the living system.
type Record struct {
	Version int    `json:"version"`        // of the format
	ID      string `json:"id"`             // a UUID
	Name    string `json:"name,omitempty"` // given by the user, or ""

	proc.Machine // of the process that began the session, which is Self

	Argv      []string  `json:"argv"`           // the command; may be cut
	Dir       string    `json:"dir,omitempty"`  // the command's working directory
	Temp      string    `json:"temp,omitempty"` // Options.Temp
	Started   time.Time `json:"started"`
	Keep      bool      `json:"keep,omitempty"`       // what the command leaves behind is to go on running
	Exec      bool      `json:"exec,omitempty"`       // the supervisor became the command
	TrackOnly bool      `json:"track_only,omitempty"` // the command is not confined

	Holder
}

// check refuses what this package would never have written.
func (r *Record) check(id string) error {
	year := r.Started.UTC().Year()
	bad := r.Version < 1 || r.ID != id || year < 0 || year > 9999 || r.Name != "" && CheckName(r.Name) != nil
	bad = bad || r.Tracker != "" && r.Keeper.IsZero() && r.Command.Start == 0 // nothing holds the session
	bad = bad || r.Cgroup != nil && !r.Cgroup.Of(id)
	bad = bad || r.Keeper.Pid == 1 // which may be the others', in a container
	for _, p := range []ProcID{r.Self, r.Keeper, r.Command} {
		bad = bad || p.Pid < 0 || p.Pid > 1<<30 // negative ones are groups to kill(2)
	}
	if bad {
		return fmt.Errorf("not a record of session %s", id)
	}
	return nil
}

// CheckName reports whether name can be given to a session: 1 to 64 letters,
// digits, dots, underscores and hyphens, the first a letter or digit, and not
// the form of an id.
func CheckName(name string) error {
	const first, marks = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "._-"
	if name == "" || len(name) > 64 || strings.Trim(name, first+marks) != "" || strings.Contains(marks, name[:1]) {
		return fmt.Errorf("session name %.80q: 1 to 64 letters, digits, '.', '_' and '-' are allowed, the first a letter or digit", name)
	}
	if _, err := uuid.Parse(name); err == nil {
		return fmt.Errorf("session name %q: looks like a session id", name)
	}
	return nil
}

func isID(name string) bool { return fingerprint.Valid(name) }
