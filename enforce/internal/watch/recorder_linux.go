package watch

import (
	"bytes"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/internal/answer"
	"github.com/zsbx/zsbx/enforce/internal/broker"
	"github.com/zsbx/zsbx/enforce/internal/seccomp"
)

// Recorder is the broker's Watcher. Its calls come from several goroutines.
type Recorder struct {
	// Model is a plan whose refusals are recorded as well, unproved; or nil.
	Model *answer.World

	world  *answer.World
	filter *seccomp.Filter // what the plan has enforced, which this one answers for
	names  map[int32]string
	paths  paths
	busy   atomic.Int32 // calls that are being looked at

	refusals
	made  map[int]int // calls by thread
	tries map[int]int // of the call that a thread makes again
}

// New makes the recorder for a plan, whose filter hands over what it sees.
func New(w *answer.World) *Recorder {
	r := &Recorder{world: w, filter: w.Filter, names: make(map[int32]string), made: make(map[int]int), tries: make(map[int]int)}
	r.paths.mounts = w.Mounts
	return r
}

// Watch answers a call, unless the broker has to.
func (r *Recorder) Watch(c *broker.Call) bool {
	if c.Tid() == 0 {
		return false
	}
	r.busy.Add(1)
	defer r.busy.Add(-1)
	name := r.count(c)
	switch verdict, errno := r.filter.Decide(c.Nr(), c.Args()); verdict {
	case seccomp.Refuses:
		c.Refuse(unix.Errno(errno))
		r.refusedCall(c, name, unix.Errno(errno))
		return true
	case seccomp.HandsOver:
		if !c.Renames() || c.MeetsMount() {
			return false
		}
	}
	l := look{call: c, r: r, name: name}
	if !l.read() {
		c.Continue()
		return true
	}
	got := r.world.Decide(&l.act)
	if got.Verdict == answer.Allowed && l.act.Op == answer.Exec {
		got = l.interpreters()
	}
	if got.Verdict == answer.Allowed {
		r.imagine(&l)
		c.Continue()
		return true
	}
	r.confirm(&l, got)
	return true
}

// imagine records what the model would refuse of what is there, or would be made.
func (r *Recorder) imagine(l *look) {
	if r.Model == nil || l.act.Missing && l.act.Op != answer.Make && l.act.Flags&answer.Creat == 0 {
		return
	}
	if got := r.Model.Decide(&l.act); got.Verdict == answer.Refused {
		r.add(l.call.Tid(), Refusal{Act: l.act, Answer: got, Call: l.name, Errno: got.Errno, Via: l.via})
	}
}

// Refused is told what the broker answered.
func (r *Recorder) Refused(c *broker.Call, errno unix.Errno) {
	r.busy.Add(1)
	defer r.busy.Add(-1)
	l := look{call: c, r: r, name: r.filter.Name(c.Nr())}
	if strings.HasPrefix(l.name, "sched_set") || l.name == "setpriority" { // of another's threads
		r.refusedCall(c, l.name, errno)
		return
	}
	if !l.read() {
		return
	}
	if l.act.Op == answer.Signal && r.world.Broker.Signals != seccomp.SignalsAll {
		return // signal 0: the broker told the truth
	}
	got := r.world.Decide(&l.act)
	if got.Verdict == answer.Refused && got.Errno == unix.ErrnoName(errno) {
		x := Refusal{Act: l.act, Answer: got, Call: l.name, Errno: got.Errno, Proved: true}
		l.outside(&x)
		r.add(c.Tid(), x)
	}
}

// refusedCall records what a rule of the filter refuses, by whoever's answer.
func (r *Recorder) refusedCall(c *broker.Call, name string, errno unix.Errno) {
	args, text := c.Args(), unix.ErrnoName(errno)
	act := answer.Act{Op: answer.Call, Name: name, Args: args[:]}
	r.add(c.Tid(), Refusal{Act: act, Answer: r.world.RefusedCall(name, text), Call: name, Errno: text, Proved: true})
}

// count notes a call and gives its name.
func (r *Recorder) count(c *broker.Call) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen++
	r.made[c.Tid()]++
	name, ok := r.names[c.Nr()]
	if !ok {
		name = r.filter.Name(c.Nr())
		r.names[c.Nr()] = name
	}
	return name
}

// confirm has the kernel say what it answers, and records a refusal.
func (r *Recorder) confirm(l *look, got answer.Answer) {
	tid := l.call.Tid()
	x := Refusal{Act: l.act, Answer: got, Call: l.name, Errno: got.Errno, Via: l.via, Program: programOf(tid)}
	l.outside(&x)
	errno, result := unix.Errno(0), again
	if r.attempts(tid) < maxTries && !l.wandering() {
		errno, result = ask(l.call)
	} else {
		l.call.Continue()
		result = unproved
	}
	switch result {
	case again:
		return
	case unproved:
		if got.Verdict == answer.Refused && !x.Ordinary {
			r.add(tid, x)
		}
	case proved:
		x.Proved = true
		if x.Errno = unix.ErrnoName(errno); errno != 0 && r.refusal(&x, errno) {
			r.add(tid, x)
		}
	}
	r.mu.Lock()
	delete(r.tries, tid)
	r.mu.Unlock()
}

// maxTries is how often a call is looked at that is made again whenever it is
// looked at, as it may be before Linux 5.19. Then it goes on, and what it would be
// answered is what the plan says.
const maxTries = 8

func (r *Recorder) attempts(tid int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tries[tid]++
	return r.tries[tid] - 1
}

// refusal reports whether an error is one that something refused with, and finds out
// whether that was the plan.
func (r *Recorder) refusal(x *Refusal, errno unix.Errno) bool {
	if x.Answer.Verdict == answer.Undecided { // a file of another process
		own := x.Act
		own.Inside = true
		if x.Answer = r.world.Decide(&own); x.Answer.Errno != x.Errno {
			x.Act.Op = answer.Trace
			x.Answer = answer.Answer{Verdict: answer.Refused, By: answer.Landlock, Errno: x.Errno}
		}
	}
	same := x.Answer.Errno == x.Errno
	switch errno {
	case unix.EPERM:
		x.Ordinary = x.Ordinary || !same
	case unix.EACCES, unix.EROFS, unix.EXDEV:
	default: // EBUSY, and that nothing is there: what the plan says alone
		return same && !x.Ordinary
	}
	if !same && !x.Ordinary {
		x.Answer = answer.Answer{Verdict: answer.Undecided, Errno: x.Errno}
	}
	return true
}

// add remembers a refusal.
func (r *Recorder) add(tid int, x Refusal) {
	if x.Program == "" {
		x.Program = programOf(tid)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	x.Pid, x.Count, x.thread, x.made = tid, 1, tid, r.made[tid]
	r.refusals.add(x)
}

// Report is what was recorded so far. A thread goes on before its refusal is noted: the
// command may have ended by the last one.
func (r *Recorder) Report() Report {
	for range 1000 {
		if r.busy.Load() == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.report()
	for i := range out.Refusals {
		x := &out.Refusals[i]
		x.Left = r.made[x.thread] - x.made
	}
	return out
}

// programOf is the name of a thread's process.
func programOf(tid int) string {
	if group := broker.ProcessOf(tid); group != 0 {
		tid = group
	}
	b, _ := os.ReadFile(process(tid) + "/comm")
	return string(bytes.TrimSuffix(b, []byte("\n")))
}
