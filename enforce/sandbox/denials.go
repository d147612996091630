package sandbox

import (
	"strings"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/why"
	"github.com/zsbx/zsbx/policy"
)

// Denials is what a command was refused, the likely causes of its failure first.
type Denials struct {
	List     []Denial `json:"refusals"`
	Proved   bool     `json:"proved"`   // each error was seen to come from the kernel
	Ordinary int      `json:"ordinary"` // how many calls would be refused without zsbx, too
	More     bool     `json:"more"`     // more was refused than could be recorded

	// Environment are names of variables that the command did not get but may have wanted.
	Environment []string `json:"environment"`

	text string
}

// Denial is one thing that was refused, however often.
type Denial struct {
	Cause     bool           `json:"cause"`              // it looks like the reason why the command failed
	Operation string         `json:"operation"`          // "read", "write", "exec", "connect" and so on
	Path      string         `json:"path"`               // or a port, a socket, a process, a system call
	To        string         `json:"to,omitempty"`       // of a rename or link
	Errno     string         `json:"errno"`              // its name, as the kernel gave it; "" for none
	Program   string         `json:"program"`            // the name of the process (proc_pid_comm(5))
	Pid       int            `json:"pid"`                // of the first process that was refused this
	Count     int            `json:"count"`              // how often
	Paths     int            `json:"paths"`              // how many different paths it has
	By        string         `json:"by"`                 // the mechanism, such as landlock or mounts; or unknown
	Reason    string         `json:"reason"`             // for people
	Origin    policy.Origin  `json:"origin,omitzero"`    // the rule that refused; zero if none did
	Flags     string         `json:"hint,omitempty"`     // flags of zsbx run that allow it; "" for none
	Rules     *policy.Policy `json:"-"`                  // what Flags add to a policy; nil for none
	GivesUp   string         `json:"gives_up,omitempty"` // the promise that Flags give up, or ""
	Harmless  string         `json:"harmless,omitempty"` // why programs continue without it, or ""
	NoHint    string         `json:"no_hint,omitempty"`  // why nothing is proposed, or ""
	Secret    bool           `json:"secret"`             // it is about a secret, so nothing is proposed
}

// Text returns the report as zsbx why prints it, with all denials, each line ended by a newline.
// Control characters in names are escaped. A nil Denials has no text.
func (d *Denials) Text() string {
	if d == nil {
		return ""
	}
	return d.text
}

// denialsOf returns what was refused under a plan to a command that ended with a status.
func denialsOf(plan *enforce.Plan, status int) *Denials {
	r := why.New(plan, plan.Refusals(), status)
	lines := append([]string{r.Headline()}, r.Lines(plan.Policy.Short, 0)...)
	d := &Denials{
		Proved:      r.Proved,
		Ordinary:    r.Ordinary,
		More:        r.More,
		Environment: r.Environment,
		text:        strings.Join(lines, "\n") + "\n",
	}
	for i := range r.Entries {
		d.List = append(d.List, denialOf(&r.Entries[i]))
	}
	return d
}

func denialOf(e *why.Entry) Denial {
	return Denial{
		Cause:     e.Cause,
		Operation: e.Verb,
		Path:      e.Path,
		To:        e.To,
		Errno:     e.Errno,
		Program:   e.Program,
		Pid:       e.Pid,
		Count:     e.Count,
		Paths:     e.Paths,
		By:        e.By,
		Reason:    e.Reason,
		Origin:    e.Origin,
		Flags:     e.Flags,
		Rules:     e.Hint.Policy,
		GivesUp:   e.GivesUp,
		Harmless:  e.Harmless,
		NoHint:    e.NoHint,
		Secret:    e.Secret,
	}
}
