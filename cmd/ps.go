package cmd

import (
	"cmp"
	"errors"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/track"
	"github.com/zsbx/zsbx/internal/units"
)

func newPs(a *app) *cobra.Command {
	all := false
	c := command("ps", func([]string) error { return coded(supervise.CodeSession, a.ps(all)) })
	c.Args = noArgs
	c.Flags().BoolVar(&all, "all", false, "list ended sessions, too")
	c.Flags().BoolVar(&a.say.json, "json", false, "print JSON")
	return c
}

// openStore opens the store for commands that list and end sessions. They must work even
// if a session has used up the user's share of epoll(7), which Go's timers need: see
// track.WithTimeout. Go's runtime returns memory by a timer from the first garbage collection
// on, so there is none below 64 MiB.
func openStore() (*track.Store, error) {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(64 << 20)
	return track.OpenStore()
}

func (a *app) ps(ended bool) error {
	st, err := openStore()
	if err != nil {
		return err
	}
	all, orphans, err := st.Survey()
	left, unread := layersLeft(all)
	hidden := func(s track.Info) bool { return s.Life == track.Ended && !ended && s.Err == nil }
	shown := slices.DeleteFunc(slices.Clone(all), hidden)
	list := append(each(all, sessionJSON), each(left, leftJSON)...)
	t := sessionTable(shown)
	t.layers(left)
	failed := errors.Join(a.show(list, t), err, unread)
	if a.say.json {
		return failed
	}
	for _, s := range shown {
		if s.Err != nil {
			a.say.warn("session %s: %v", s.ID[:shortest], s.Err)
		}
	}
	a.tellOrphans(orphans)
	return failed
}

// tellOrphans warns about keepers that belong to no session of this store. An editor, for
// example, may have another store.
func (a *app) tellOrphans(orphans []track.Info) {
	for _, s := range orphans {
		a.say.warn("keeper %d of %s holds %s, but belongs to no session here: its record was removed or is elsewhere",
			s.Record.Keeper.Pid, commandLine(s.Record.Argv), count(len(s.Procs), "process", "processes"))
		if s.ID != "" {
			a.say.hint("zsbx reap %s", s.ID)
		} else {
			a.say.hint("kill %d", s.Record.Keeper.Pid)
		}
	}
}

type jsonSession struct {
	ID        string       `json:"id"`
	Name      string       `json:"name,omitempty"`
	State     track.Life   `json:"state"`
	Tracker   track.Kind   `json:"tracker"`
	Guarantee string       `json:"guarantee"`
	Command   []string     `json:"command"`
	Dir       string       `json:"dir,omitempty"`
	Started   time.Time    `json:"started,omitzero"`
	Keep      bool         `json:"keep"`
	Confined  bool         `json:"confined"`
	Keeper    int          `json:"keeper_pid,omitempty"`
	Processes []track.Proc `json:"processes"`
	Error     string       `json:"error,omitempty"`
	Layer     *jsonLeft    `json:"layer,omitempty"`
}

// jsonLeft is a layer that a session has left.
type jsonLeft struct {
	Bytes int64 `json:"bytes"`
	Files int   `json:"files"`
}

// layersLeft returns the layers whose sessions are not among those in the store.
func layersLeft(sessions []track.Info) (left []*listed, _ error) {
	all, err := layer.All(supervise.LayerState())
	for _, l := range all {
		if !slices.ContainsFunc(sessions, func(s track.Info) bool { return s.ID == l.Session }) {
			x := &listed{Layer: l, life: track.Ended}
			x.bytes, x.files, x.err = l.Size()
			left = append(left, x)
		}
	}
	return left, err
}

func leftJSON(x *listed) jsonSession {
	j := jsonSession{
		ID: x.Session, Name: x.Name, State: x.life, Command: x.Command, Dir: x.Record.Dir, Started: x.Began,
		Confined: true, Layer: &jsonLeft{x.bytes, x.files},
	}
	if x.err != nil {
		j.Error = x.err.Error()
	}
	return j
}

func sessionJSON(i track.Info) jsonSession {
	j := jsonSession{
		ID: i.ID, Name: i.Record.Name, State: i.Life,
		Tracker: i.Record.Tracker, Guarantee: i.Guarantee(),
		Command: i.Record.Argv, Dir: i.Record.Dir, Started: i.Record.Started,
		Keep: i.Record.Keep, Confined: !i.Record.Started.IsZero() && !i.Record.TrackOnly,
		Keeper: i.Record.Keeper.Pid, Processes: i.Procs,
	}
	if i.Err != nil {
		j.Error = i.Err.Error()
	}
	return j
}

// widestCommand is how much of a command line ps shows, in bytes.
const widestCommand = 70

// commandLine writes a command for people, on one line of at most widestCommand bytes.
// It is quoted: a process chooses its own name, which must not control the terminal.
func commandLine(argv []string) string {
	line := quoteArgs(argv)
	if len(line) <= widestCommand {
		return line
	}
	return strings.ToValidUTF8(line[:widestCommand-len("...")], "") + "..."
}

// procLine returns the command line of a process, or else the kernel's name for it.
func procLine(p track.Proc) string {
	if len(p.Argv) == 0 {
		return "[" + commandLine([]string{p.Name}) + "]"
	}
	return commandLine(p.Argv)
}

// shortest is how many characters of an id ps shows. Two ids do not share them by chance.
const shortest = 8

// layers adds a row for each layer that a session has left.
func (t *table) layers(left []*listed) {
	for i, x := range left {
		if i == 0 && t.b.Len() == 0 {
			t.sessionHead()
		}
		t.row(x.Session[:shortest], cmp.Or(x.Name, "-"), "layer", "0", "-", age(x.Began),
			commandLine(x.Command)+" ("+units.Short(x.bytes)+": zsbx try show "+x.Session[:shortest]+")")
	}
}

func (t *table) sessionHead() { t.row("ID", "NAME", "STATE", "PROCS", "KEEPER", "AGE", "COMMAND") }

// sessionTable returns a table of the sessions, which is empty if there are none.
func sessionTable(all []track.Info) *table {
	t := &table{}
	if len(all) > 0 {
		t.sessionHead()
	}
	for i := range all {
		s := &all[i]
		keeper := "-"
		old := "-"
		what := "(no record)"
		if pid := s.Record.Keeper.Pid; pid != 0 && !s.Life.Stale() {
			keeper = strconv.Itoa(pid)
		}
		if !s.Record.Started.IsZero() {
			old = age(s.Record.Started)
			what = commandLine(s.Record.Argv)
		}
		name := cmp.Or(s.Record.Name, "-")
		t.row(s.ID[:shortest], name, string(s.Life), strconv.Itoa(len(s.Procs)), keeper, old, what)
	}
	return t
}
