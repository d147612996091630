package watch

import (
	"sync"

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

	thread, made int // the thread that met it last, and how many calls that had made by then
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
	index map[kind]int
	more  bool
}

// kind is what two refusals have in common that are told as one.
type kind struct {
	op                   answer.Op
	call, path, to, name string
	port                 uint16
	errno, program       string
	ordinary             bool
}

// add takes what was met just now. r.mu is held.
func (r *refusals) add(x Refusal) {
	k := kind{x.Act.Op, x.Call, x.Act.Path, x.Act.To, x.Act.Name, x.Act.Port, x.Errno, x.Program, x.Ordinary}
	i, ok := r.index[k]
	switch {
	case ok:
		r.list[i].Count += x.Count
	case len(r.list) >= maxRefusals:
		r.more = true
		return
	default:
		if r.index == nil {
			r.index = make(map[kind]int)
		}
		i = len(r.list)
		r.index[k], r.list = i, append(r.list, x)
	}
	e := &r.list[i]
	e.Proved = e.Proved && x.Proved
	e.thread, e.made, e.When = x.thread, x.made, float64(r.seen)
}

// report tells them all. r.mu is held.
func (r *refusals) report() Report {
	out := Report{Seen: r.seen, Proved: true, More: r.more}
	for _, x := range r.list {
		x.When /= float64(max(r.seen, 1))
		out.Proved = out.Proved && x.Proved
		out.Refusals = append(out.Refusals, x)
	}
	return out
}
