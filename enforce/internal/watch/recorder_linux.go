package watch

import (
	"cmp"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/internal/answer"
	"github.com/zsbx/zsbx/enforce/internal/broker"
	"github.com/zsbx/zsbx/enforce/internal/seccomp"
)

// Recorder is the broker's Watcher. Its calls come from several goroutines.
type Recorder struct {
	world   *answer.World
	imagine bool              // nothing of the world holds: what it would refuse is recorded
	names   map[int32]string  // of the system calls
	dirs    map[string]string // directories as they are written, and their canonical names; refusals.mu
	looking sync.RWMutex      // held for writing, nothing is being looked at
	threads map[int]*thread

	refusals
}

// New makes the recorder for a plan, whose filter hands over what it sees. With imagine
// the files of another plan hold the command, and what this one would refuse is recorded,
// unproved; filter and broker are those that hold it.
func New(w *answer.World, imagine bool) *Recorder {
	return &Recorder{world: w, imagine: imagine, names: w.Filter.Names(), dirs: make(map[string]string), threads: make(map[int]*thread)}
}

// Watch answers a call, unless the broker has to.
func (r *Recorder) Watch(c *broker.Call) bool {
	if c.Tid() == 0 {
		return false
	}
	r.looking.RLock()
	defer r.looking.RUnlock()
	l := r.look(c, 1)
	switch handsOver, errno := r.world.Filter.Decide(c.Nr(), c.Args()); {
	case errno != 0:
		l.refusedCall(unix.Errno(errno))
		c.Refuse(unix.Errno(errno))
		return true
	case handsOver && (!c.Renames() || c.MeetsMount()):
		return false
	}
	got := answer.Answer{Verdict: answer.Allowed}
	if l.read() {
		got = l.decide()
	}
	switch a := &l.act; {
	case got.Verdict != answer.Allowed && !r.imagine:
		l.confirm(got)
		return true
	case got.Verdict == answer.Refused && (!a.Missing || a.Op == answer.Make || a.Flags&answer.Creat != 0): // else ENOENT
		l.add(l.refusal(got))
	}
	c.Continue()
	return true
}

// look is a call that is going to be looked at, and counts as so many more.
func (r *Recorder) look(c *broker.Call, more int) *look {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.threads[c.Tid()]
	if t == nil {
		t = &thread{}
		r.threads[c.Tid()] = t
	}
	r.seen += more
	t.made += more
	return &look{call: c, r: r, name: r.names[c.Nr()], proc: process(c.Tid()), thread: t, made: t.made}
}

// Refused is told what the broker answered.
func (r *Recorder) Refused(c *broker.Call, errno unix.Errno) {
	r.looking.RLock()
	defer r.looking.RUnlock()
	l := r.look(c, 0)
	switch {
	case strings.HasPrefix(l.name, "sched_set") || l.name == "setpriority": // of another's threads
		l.refusedCall(errno)
	case !l.read():
	case l.act.Op == answer.Signal && r.world.Broker.Signals != seccomp.SignalsAll:
		// signal 0: the broker told the truth
	default:
		if got := l.decide(); got.Verdict == answer.Refused && got.Errno == unix.ErrnoName(errno) {
			x := l.refusal(got)
			x.Proved, x.Ordinary = true, l.outside()
			l.add(x)
		}
	}
}

// refusedCall records what a rule of the filter refuses, by whoever's answer.
func (l *look) refusedCall(errno unix.Errno) {
	l.act = answer.Act{Op: answer.Call, Name: l.name, Args: l.call.Args()}
	x := l.refusal(l.r.world.RefusedCall(l.name, unix.ErrnoName(errno)))
	x.Proved = true
	l.add(x)
}

// maxTries is how often a call is looked at that is made again whenever it is
// looked at, as it may be before Linux 5.19. Then it goes on, and what it would be
// answered is what the plan says.
const maxTries = 8

// confirm has the kernel say what it answers, and records a refusal. A program that is
// not executed by the first thread of its process goes on by another number.
func (l *look) confirm(got answer.Answer) {
	x := l.refusal(got)
	x.Ordinary = l.outside()
	var errno unix.Errno
	wanders := l.act.Op == answer.Exec && broker.ProcessOf(x.Pid) != x.Pid
	if l.thread.tries.Add(1) > maxTries || wanders {
		l.call.Continue()
	} else if errno, x.Proved = ask(l.call); errno >= restarted {
		return
	}
	l.thread.tries.Store(0)
	if x.Proved && x.isRefusal(l.r.world, errno) || !x.Proved && got.Verdict == answer.Refused && !x.Ordinary {
		l.add(x)
	}
}

// isRefusal reports whether an error is one that something refused with, and finds out
// whether that was the plan.
func (x *Refusal) isRefusal(w *answer.World, errno unix.Errno) bool {
	x.Errno = unix.ErrnoName(errno)
	if x.Answer.Verdict == answer.Undecided { // a file of another process
		own := x.Act
		own.Inside = true
		if x.Answer = w.Decide(&own); x.Answer.Errno != x.Errno {
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
		return errno != 0 && same && !x.Ordinary
	}
	if !same && !x.Ordinary {
		x.Answer = answer.Answer{Verdict: answer.Undecided, Errno: x.Errno}
	}
	return true
}

// refusal is what the call is refused, and by which program: that may be another one
// when the call is over.
func (l *look) refusal(got answer.Answer) Refusal {
	tid := l.call.Tid()
	comm, _ := os.ReadFile(process(cmp.Or(broker.ProcessOf(tid), tid)) + "/comm")
	return Refusal{Act: l.act, Answer: got, Call: l.name, Errno: got.Errno, Via: l.via, Pid: tid, Count: 1,
		Program: strings.TrimSuffix(string(comm), "\n"), thread: l.thread, made: l.made}
}

func (l *look) add(x Refusal) {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	l.r.add(x)
}

// Report is what was recorded so far. A thread goes on before its refusal is noted: the
// command may have ended by the last one.
func (r *Recorder) Report() Report {
	r.looking.Lock()
	defer r.looking.Unlock()
	return r.refusals.Report()
}
