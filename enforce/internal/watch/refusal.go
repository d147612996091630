package watch

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/zsbx/zsbx/enforce/internal/answer"
)

// Refusal is something that a command was refused. zsbx why --json uses the names in the tags.
type Refusal struct {
	Act     answer.Act    `json:"-"`
	Answer  answer.Answer `json:"-"`
	Call    string        `json:"-"`                        // the system call
	Errno   string        `json:"errno"`                    // its name, as the kernel gave it
	Proved  bool          `json:"proved"`                   // it was seen; else only the plan says so
	Program string        `json:"program"`                  // the name of the process (proc_pid_comm(5))
	Pid     int           `json:"pid"`                      // the first process that was refused this
	Via     string        `json:"interpreter_of,omitempty"` // the program whose interpreter Act.Path is; or ""

	// Ordinary says that the act would be refused without a plan, too, by the modes of files or
	// because a process is another user's.
	Ordinary bool `json:"-"`

	Count int     `json:"count"`
	Left  int     `json:"-"` // how many calls its thread made after the last one
	When  float64 `json:"-"` // the last one's position among all calls, between 0 and 1

	thread *thread // that was refused last
	made   int     // how many calls that thread had made by then
}

// thread is a thread of the command.
type thread struct {
	made  int          // calls
	tries atomic.Int32 // at its current call
}

// Unknown reports whether neither the plan nor file modes explain the refusal.
func (r *Refusal) Unknown() bool { return !r.Ordinary && r.Answer.Verdict != answer.Refused }

// Report has all that was seen.
type Report struct {
	Refusals []Refusal
	Seen     int  // calls that were looked at
	Proved   bool // each refusal was proved
	More     bool // there were more refusals than are remembered
}

const maxRefusals = 5000 // how many different ones are remembered

// refusals has the refusals so far, one of each kind.
type refusals struct {
	mu    sync.Mutex
	all   Report
	index map[Refusal]int // by everything except counts
}

// add adds a refusal. more is how many calls were not counted in Seen yet.
func (r *refusals) add(x Refusal, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all.Seen += more
	kind := x
	kind.Proved, kind.Pid, kind.Count, kind.thread, kind.made = false, 0, 0, nil, 0
	if x.Ordinary {
		kind = Refusal{Ordinary: true, Call: x.Call, Errno: x.Errno} // one entry for all, so that they use up no space
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

// Report returns the refusals so far.
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
