package trace

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/enforce/answer"
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

	// Verdict says why a host outside is refused, or can't be reached, and Reason is its reason. It is
	// nil for other refusals.
	Verdict *rule.Verdict `json:"-"`
	Reason  rule.Reason   `json:"-"`

	// Ordinary says that the act would be refused without a plan, too, by the modes of files or
	// because a process is another user's.
	Ordinary bool `json:"-"`

	Process int `json:"-"` // that was refused last, or 0 if that is not known

	Count int     `json:"count"`
	Left  int     `json:"-"` // how many calls its thread made after the last one
	When  float64 `json:"-"` // the last one's position among all calls, between 0 and 1
	Exit  int     `json:"-"` // the status with which its process ended after it; 0 also if that was not seen

	thread *thread // that was refused last
	made   int     // how many calls that thread had made by then
}

// thread is a thread of the command.
type thread struct {
	made  int          // calls
	lacks int          // for files that are missing
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

	// Failures are calls that failed for an ordinary reason: the modes of files, or a missing
	// file, which is not proved. Of each thread it has the last one. The latest comes first, and
	// only the latest of many are remembered.
	Failures []Refusal
}

const maxRefusals = 5000 // how many different ones are remembered

// refusals has the refusals so far, one of each kind.
type refusals struct {
	mu    sync.Mutex
	all   Report
	index map[Refusal]int // by everything except counts

	exits    map[int]exited // the last of each process that failed
	failures []Refusal      // the latest, as a ring
	failed   int            // how many there were
}

// exited is the end of a process that failed.
type exited struct {
	status int
	at     int // how many calls came before
}

const maxFailures, maxExits = 256, 100_000

// ended remembers the end of a process.
func (r *refusals) ended(process, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.exits == nil {
		r.exits = make(map[int]exited)
	}
	if len(r.exits) < maxExits && status != 0 {
		r.exits[process] = exited{status, r.all.Seen}
	}
}

// fail remembers a call that failed for an ordinary reason. The lock is held.
func (r *refusals) fail(x Refusal) {
	x.When = float64(r.all.Seen)
	if len(r.failures) < maxFailures {
		r.failures = append(r.failures, x)
	} else {
		r.failures[r.failed%maxFailures] = x
	}
	r.failed++
}

// add adds a refusal. more is how many calls were not counted in Seen yet.
func (r *refusals) add(x Refusal, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all.Seen += more
	kind := x
	kind.Proved = false
	kind.Pid = 0
	kind.Process = 0
	kind.Count = 0
	kind.thread = nil
	kind.made = 0
	kind.Verdict = nil
	if x.Ordinary {
		r.fail(x)
		kind = Refusal{Ordinary: true, Call: x.Call, Errno: x.Errno} // one entry for all, so that they use up no space
	}
	i, known := r.index[kind]
	switch {
	case known:
		e := &r.all.Refusals[i]
		x.Count += e.Count
		x.Proved = x.Proved && e.Proved
		x.Pid = e.Pid
	case len(r.index) == maxRefusals:
		r.all.More = true
		return
	default:
		if r.index == nil {
			r.index = make(map[Refusal]int)
		}
		i = len(r.index)
		r.index[kind] = i
		r.all.Refusals = append(r.all.Refusals, x)
	}
	x.When = float64(r.all.Seen)
	r.all.Refusals[i] = x
}

// Report returns the refusals so far.
func (r *refusals) Report() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.all
	out.Refusals = slices.Clone(out.Refusals)
	out.Proved = true
	for i := range out.Refusals {
		r.end(&out.Refusals[i])
		out.Proved = out.Proved && out.Refusals[i].Proved
	}
	known := make(map[*thread]bool)
	for i := range r.failures {
		x := r.failures[(r.failed-1-i)%len(r.failures)]
		if !known[x.thread] {
			known[x.thread] = true
			r.end(&x)
			out.Failures = append(out.Failures, x)
		}
	}
	return out
}

// end sets what is known only at the end: how many of all calls came before a refusal, how many
// its thread made after it, and how its process ended.
func (r *refusals) end(x *Refusal) {
	if e, known := r.exits[x.Process]; known && float64(e.at) >= x.When {
		x.Exit = e.status
	}
	x.When /= float64(max(r.all.Seen, 1))
	if x.thread != nil {
		x.Left = x.thread.made - x.made
	}
}
