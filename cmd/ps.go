package cmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/policy/shell"
	"github.com/zsbx/zsbx/track"
)

func newPs(a *app) command {
	c := &cobra.Command{
		Use:   "ps [--json]",
		Short: "List sessions and their processes",
		Long: `List this user's sessions, oldest first: the id, which reap takes, the name, the
state, the tracker and what it guarantees, and the processes. Of a session whose
files can't be read, what is known is listed.

A session is running, kept (its command ended, and --keep left the rest), ending
(it is being killed), ended (only its record is left), lost (its keeper was
killed, or stopped while zsbx was: something may be left), or elsewhere (it
belongs to another machine or another PID namespace).

There is a warning for each keeper without a session, whose record was removed or
lies elsewhere.`,
		Example: "  zsbx ps --json",
		Args:    noArgs,
	}
	asJSON := c.Flags().Bool("json", false, "print JSON")
	c.RunE = func(*cobra.Command, []string) error { return a.ps(*asJSON) }
	return command{Command: c}
}

func (a *app) ps(asJSON bool) error {
	st, err := track.OpenStore()
	if err != nil {
		return sessionErr(err)
	}
	all, err := st.List()
	if asJSON {
		list := []jsonSession{}
		for i := range all {
			list = append(list, sessionJSON(&all[i]))
		}
		return errors.Join(a.printJSON(list), sessionErr(err))
	}
	var b strings.Builder
	for i := range all {
		sessionText(&b, &all[i], time.Now())
	}
	if err := a.printText(b.String()); err != nil {
		return err
	}
	if err == nil {
		a.tellStrays(st, all)
	}
	return sessionErr(err)
}

// tellStrays warns of keepers that no session accounts for. They are not
// sessions of this store: an editor may keep its own elsewhere.
func (a *app) tellStrays(st *track.Store, listed []track.Info) {
	strays, err := st.Strays(listed)
	if err != nil {
		a.say.warn("looking for keepers without a session: %v", err)
	}
	for _, s := range strays {
		a.say.warn("keeper %d of %s holds %s, but no session here has it: the record was removed or lies elsewhere",
			s.Keeper.Pid, s.Keeper.CommandLine(widestCommand), count(len(s.Procs), "process", "processes"))
		if s.ID != "" {
			a.say.hint("zsbx reap %s", s.ID)
		} else {
			a.say.hint("kill %d", s.Keeper.Pid)
		}
	}
}

// jsonSession is a session in the output of ps --json.
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
}

func sessionJSON(i *track.Info) jsonSession {
	j := jsonSession{
		ID: i.ID, Name: i.Record.Name, State: i.Life,
		Tracker: i.Holder.Tracker, Guarantee: i.Guarantee(),
		Command: append([]string{}, i.Record.Argv...), Dir: i.Record.Dir, Started: i.Record.Started,
		Keep: i.Record.Keep, Confined: recorded(i) && !i.Record.TrackOnly,
		Keeper: i.Holder.Keeper.Pid, Processes: append([]track.Proc{}, i.Procs...),
	}
	if i.Err != nil {
		j.Error = i.Err.Error()
	}
	return j
}

// widestCommand is how much of a command line ps shows, in characters.
const widestCommand = 70

// sessionText is a session for people: a line of its own, one for the tracker,
// and one for each process.
func sessionText(b *strings.Builder, i *track.Info, now time.Time) {
	name := ""
	if i.Record.Name != "" {
		name = i.Record.Name + "  "
	}
	what := "its record is missing"
	switch {
	case recorded(i):
		what = age(now.Sub(i.Record.Started)) + "  " + printable(track.CommandLine(i.Record.Argv, widestCommand))
	case i.Err != nil:
		what = "its record can't be read"
	}
	fmt.Fprintf(b, "%s  %s%s  %s\n", i.ID, printable(name), i.Life, what)
	if i.Err != nil {
		for line := range strings.Lines(i.Err.Error()) {
			b.WriteString("  " + printable(strings.TrimRight(line, "\n")) + "\n")
		}
	}
	keeper := ""
	if pid := i.Holder.Keeper.Pid; pid != 0 && !i.Life.Stale() {
		keeper = fmt.Sprintf(", keeper %d", pid)
	}
	if i.Holder.Tracker == "" {
		b.WriteString("  tracker not recorded" + keeper + "\n")
	} else {
		fmt.Fprintf(b, "  tracked by %s%s: %s\n", i.Holder.Tracker, keeper, i.Guarantee())
	}
	t := &table{}
	for _, p := range i.Procs {
		t.row(strconv.Itoa(p.Pid), p.State, p.CommandLine(widestCommand))
	}
	t.write(b)
}

// recorded reports whether there is a record of the session: some of its files may
// have been removed by hand.
func recorded(i *track.Info) bool { return !i.Record.Started.IsZero() }

// age is a time span for people, in its largest unit.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// sessionErr gives an error of package track its code and a hint.
func sessionErr(err error) error {
	if err == nil {
		return nil
	}
	return &failure{code: codeSession, status: exitFailed, err: err, hint: sessionHint(err)}
}

// sessionHint is what to type for an error of package track, or "".
func sessionHint(err error) string {
	var te *track.TrackerError
	var pe *os.PathError
	switch {
	case errors.As(err, &te):
		return te.Hint
	case errors.Is(err, track.ErrNotFound), errors.Is(err, track.ErrHeld):
		return "zsbx ps"
	case errors.Is(err, track.ErrNoPlace) && fork.ShortageOf(err) == nil:
		return "XDG_STATE_HOME=/a/directory/of/yours zsbx run ..."
	case errors.As(err, &pe) && pe.Op == "remove":
		return removeHint(pe)
	}
	return ""
}

// removeHint is what to type where a file of the store can't be removed.
func removeHint(e *os.PathError) string {
	switch dir := shell.Quote(filepath.Dir(e.Path)); {
	case errors.Is(e, syscall.ENOTEMPTY), errors.Is(e, syscall.EEXIST):
		return "rm -r " + shell.Quote(e.Path)
	case errors.Is(e, syscall.EACCES):
		return "chmod 700 " + dir
	case errors.Is(e, syscall.EPERM) && runtime.GOOS == "linux":
		return "sudo chattr -ia " + dir + " " + shell.Quote(e.Path)
	}
	return "zsbx reap --stale"
}
