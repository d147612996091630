package watch

import (
	"sync"
	"sync/atomic"

	"github.com/zsbx/zsbx/enforce/internal/answer"
)

// Refusal is what a command was refused.
type Refusal struct {
	Act     answer.Act
	Answer  answer.Answer
	Call    string // the system call
	Errno   string // its name, as the kernel gave it
	Proved  bool   // it was seen; else it is what the plan says
	Program string // the name of the process (proc_pid_comm(5))
	Pid     int    // of the first that met it
	Via     string // the program whose interpreter Act.Path is; or ""

	// Ordinary is what would be refused without a plan too, by the modes of files or
	// to another user's processes.
	Ordinary bool

	Count int
	Left  int     // the fewest calls that its thread made after it
	When  float64 // of the last time, between 0 and 1 of all calls

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

// maxRefusals is how many different refusals are remembered.
const maxRefusals = 5000

// refusals are those that were met so far, one of each kind.
type refusals struct {
	mu    sync.Mutex
	seen  int // calls, or messages
	list  []Refusal
	index map[Refusal]int // by what is not counted
	more  bool
}

// add takes what was met just now. r.mu is held.
func (r *refusals) add(x Refusal) {
	kind := x
	kind.Proved, kind.Pid, kind.Count, kind.thread, kind.made = false, 0, 0, nil, 0
	i, known := r.index[kind]
	switch {
	case known:
		r.list[i].Count += x.Count
	case len(r.list) >= maxRefusals:
		r.more = true
		return
	default:
		if r.index == nil {
			r.index = make(map[Refusal]int)
		}
		i = len(r.list)
		r.index[kind], r.list = i, append(r.list, x)
	}
	e := &r.list[i]
	e.Proved = e.Proved && x.Proved
	e.thread, e.made, e.When = x.thread, x.made, float64(r.seen)
}

// Report tells what was met so far.
func (r *refusals) Report() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := Report{Seen: r.seen, Proved: true, More: r.more}
	for _, x := range r.list {
		x.When /= float64(max(r.seen, 1))
		if x.thread != nil {
			x.Left = x.thread.made - x.made
		}
		out.Proved = out.Proved && x.Proved
		out.Refusals = append(out.Refusals, x)
	}
	return out
}
