package watch

import "github.com/zsbx/zsbx/enforce/internal/answer"

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
