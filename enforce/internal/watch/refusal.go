package watch

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/zsbx/zsbx/enforce/internal/answer"
)

// Refusal is what a command was refused. The names are those of zsbx why --json.
type Refusal struct {
	Act     answer.Act    `json:"-"`
	Answer  answer.Answer `json:"-"`
	Call    string        `json:"-"`                        // the system call
	Errno   string        `json:"errno"`                    // its name, as the kernel gave it
	Proved  bool          `json:"proved"`                   // it was seen; else it is what the plan says
	Program string        `json:"program"`                  // the name of the process (proc_pid_comm(5))
	Pid     int           `json:"pid"`                      // of the first that met it
	Via     string        `json:"interpreter_of,omitempty"` // the program whose interpreter Act.Path is; or ""

	// Ordinary is what would be refused without a plan too, by the modes of files or
	// to another user's processes.
	Ordinary bool `json:"-"`

	Count int     `json:"count"`
	Left  int     `json:"-"` // the fewest calls that its thread made after it
	When  float64 `json:"-"` // of the last time, between 0 and 1 of all calls

	thread *thread // that met it last
	made   int     // how many calls that had made by then
}

// thread is one of the command's.
type thread struct {
	made  int          // calls
	tries atomic.Int32 // of the one that it makes now
}

// Unknown reports that neither the plan nor file modes explain it.
func (r *Refusal) Unknown() bool { return !r.Ordinary && r.Answer.Verdict != answer.Refused }

// Report is all that was seen.
type Report struct {
	Refusals []Refusal
	Seen     int  // calls that were looked at
	Proved   bool // each refusal was
	More     bool // there were more refusals than are remembered
}

const maxRefusals = 5000 // different ones that are remembered

// refusals are those that were met so far, one of each kind.
type refusals struct {
	mu    sync.Mutex
	all   Report
	index map[Refusal]int // by what is not counted
}

// add takes what was met just now, by so many calls that were not counted yet.
func (r *refusals) add(x Refusal, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all.Seen += more
	kind := x
	kind.Proved, kind.Pid, kind.Count, kind.thread, kind.made = false, 0, 0, nil, 0
	if x.Ordinary {
		kind = Refusal{Ordinary: true, Call: x.Call, Errno: x.Errno} // they take no room from others
	}
	i, known := r.index[kind]
	switch {
	case known:
		e := &r.all.Refusals[i]
		x.Count, x.Proved, x.Pid = x.Count+e.Count, x.Proved && e.Proved, e.Pid
	case len(r.index) == maxRefusals:
		r.all.More = true
		return
	default:
		if r.index == nil {
			r.index = make(map[Refusal]int)
		}
		i = len(r.index)
		r.index[kind], r.all.Refusals = i, append(r.all.Refusals, x)
	}
	x.When = float64(r.all.Seen)
	r.all.Refusals[i] = x
}

// Report tells what was met so far.
func (r *refusals) Report() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.all
	out.Refusals, out.Proved = slices.Clone(out.Refusals), true
	for i := range out.Refusals {
		x := &out.Refusals[i]
		if x.When /= float64(max(out.Seen, 1)); x.thread != nil {
			x.Left = x.thread.made - x.made
		}
		out.Proved = out.Proved && x.Proved
	}
	return out
}
