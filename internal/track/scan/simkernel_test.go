package scan

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/internal/track/proc"
)

// simKernel is a simulated process table. Before every call of the search, all living processes
// get a turn. hazards says how hostile it is.
type simKernel struct {
	hazards
	rng   *rand.Rand
	procs map[int]*simProc
	order []int  // the sorted pids: a map's order would not depend on the seed alone
	next  int    // the next pid to try
	clock uint64 // microseconds since 1970
	self  int

	calls     int
	killedOut []proc.ID // outsiders that got SIGKILL; must stay empty
}

// hazards are the difficulties of a schedule. Rates are in thousandths per turn.
type hazards struct {
	pids       int // size of the pid space; in a small one pids are reused soon
	outsiders  int
	churn      int // outsiders fork children that end soon
	hoppers    int // members that fork and exit, over and over
	hop        int // how often they do
	breeders   int // members that fork and stay
	breed      int
	sleepers   int  // members that do nothing
	linger     int  // of those that end, how many stay zombies for a while
	zombies    int  // ended members that were not reaped
	foreign    int  // members that may not be signalled
	unkillable int  // members that survive SIGKILL
	nonsense   int  // how often a probe of another process returns nonsense
	mute       bool // lookups of the names never answer
	racyList   bool // processes can end while the list is made
	hidden     bool // and are not even counted
	tick       int  // microseconds per turn; 0 for 100
}

type simProc struct {
	proc.Process
	member     bool
	kind       string // "hopper", "breeder", "brief", "" for those that do nothing
	boxed      int    // of outsiders: 0 no profile, 1 one that denies all, 2 one that allows all
	foreign    bool
	unkillable bool
	stopped    bool
}

func newSimKernel(h hazards, seed uint64) *simKernel {
	k := &simKernel{hazards: h, rng: rand.New(rand.NewPCG(seed, 1)), procs: map[int]*simProc{}, next: 2, clock: 1e15}
	k.add(&simProc{Process: proc.Process{ID: proc.ID{Pid: 1, Start: 1}}})
	me := k.spawn(1, false, "")
	me.boxed, k.self = 0, me.Pid
	for range h.outsiders {
		k.spawn(1, false, "").boxed = k.rng.IntN(3)
	}
	for i := range h.hoppers + h.breeders + h.sleepers + h.zombies + h.foreign + h.unkillable {
		kind := ""
		switch {
		case i < h.hoppers:
			kind = "hopper"
		case i < h.hoppers+h.breeders:
			kind = "breeder"
		}
		p := k.spawn(1, true, kind)
		j := i - h.hoppers - h.breeders - h.sleepers
		if j >= 0 && j < h.zombies {
			p.State = "Z"
		}
		p.foreign = j >= h.zombies && j < h.zombies+h.foreign
		p.unkillable = j >= h.zombies+h.foreign
	}
	return k
}

// spawn makes a process. Start times are unique; pids are reused.
func (k *simKernel) spawn(parent int, Member bool, kind string) *simProc {
	for range k.pids {
		pid := k.next
		k.next++
		if k.next >= k.pids {
			k.next = 2
		}
		if k.procs[pid] == nil {
			k.clock++
			p := &simProc{Process: proc.Process{ID: proc.ID{Pid: pid, Start: k.clock}, Parent: parent, Group: pid}, member: Member, kind: kind}
			k.add(p)
			return p
		}
	}
	return nil // the table is full
}

func (k *simKernel) add(p *simProc) {
	i, _ := slices.BinarySearch(k.order, p.Pid)
	k.order = slices.Insert(k.order, i, p.Pid)
	k.procs[p.Pid] = p
}

func (k *simKernel) end(p *simProc) {
	if !p.Dead() && k.rng.IntN(1000) < k.linger {
		p.State, p.kind = "Z", "lingering"
		return
	}
	i, _ := slices.BinarySearch(k.order, p.Pid)
	k.order = slices.Delete(k.order, i, i+1)
	delete(k.procs, p.Pid)
	for _, c := range k.procs {
		if c.Parent == p.Pid {
			c.Parent = 1
		}
	}
}

// turn lets every process act once.
func (k *simKernel) turn() {
	k.calls++
	k.clock += uint64(cmp.Or(k.tick, 100))
	for i, pid := range slices.Clone(k.order) {
		p := k.procs[pid]
		if p == nil || p.stopped || pid == k.self || i == 0 {
			continue
		}
		chance := k.rng.IntN(1000)
		switch {
		case p.Dead():
			if p.kind == "lingering" && chance < 200 {
				k.end(p)
			}
		case p.kind == "hopper" && chance < k.hop:
			if c := k.spawn(1, true, "hopper"); c != nil {
				k.end(p)
			}
		case p.kind == "breeder" && chance < k.breed:
			k.spawn(pid, true, "breeder")
		case p.kind == "brief" && chance < 300:
			k.end(p)
		case !p.member && p.kind == "" && chance < k.churn:
			if c := k.spawn(pid, false, "brief"); c != nil {
				c.boxed = p.boxed
			}
		}
	}
}

func (k *simKernel) Snapshot() (rows []proc.Process, _ error) {
	k.turn()
	var ids []proc.ID
	for _, pid := range slices.Clone(k.order) {
		ids = append(ids, k.procs[pid].ID)
	}
	for i, id := range ids {
		if k.racyList && i%4 == 0 {
			k.turn()
		}
		switch p := k.procs[id.Pid]; {
		case p != nil && p.ID == id:
			rows = append(rows, p.Process)
		case !k.hidden:
			rows = append(rows, proc.Process{ID: proc.ID{Pid: id.Pid}, State: "X"})
		}
	}
	return rows, nil
}

func (k *simKernel) Lookup(pid int) (proc.Process, error) {
	k.turn()
	if p := k.procs[pid]; p != nil {
		return p.Process, nil
	}
	return proc.Process{}, syscall.ESRCH
}

func (k *simKernel) Probe(pid int) Answers {
	k.turn()
	p := k.procs[pid]
	if p != nil && pid != k.self && k.rng.IntN(1000) < k.nonsense {
		return k.rubbish(p.member)
	}
	a := k.truth(p)
	if k.mute {
		a.Allow, a.Deny = NoAnswer, NoAnswer
	}
	return a
}

// truth returns what sandbox_check answers about a process.
func (k *simKernel) truth(p *simProc) Answers {
	switch {
	case p == nil || p.Dead():
		return Answers{1, 1, 1}
	case p.member:
		return Answers{1, Allowed, Denied}
	case p.boxed == 0:
		return Answers{0, NoAnswer, NoAnswer}
	case p.boxed == 1:
		return Answers{1, 1, 1}
	}
	return Answers{1, 0, 0}
}

// rubbish returns nonsense, but no clear lie: never the exact fingerprint for an outsider, nor
// the exact answers of an outsider for a member, which nothing could detect.
func (k *simKernel) rubbish(isMember bool) Answers {
	lie := Member
	if isMember {
		lie = Outside
	}
	for {
		n := func() int { return []int{-1, 0, 1, 2, 42}[k.rng.IntN(5)] }
		a := Answers{n(), n(), n()}
		if a.Match() != lie {
			return a
		}
	}
}

func (k *simKernel) Signal(pid int, sig syscall.Signal) error {
	k.turn()
	p := k.procs[pid]
	switch {
	case pid < 0 || p == nil || p.Dead():
		return syscall.ESRCH
	case p.foreign:
		return syscall.EPERM
	}
	switch sig {
	case syscall.SIGSTOP:
		p.stopped = true
	case syscall.SIGCONT:
		p.stopped = false
	case syscall.SIGKILL:
		if !p.member {
			k.killedOut = append(k.killedOut, p.ID)
		}
		if !p.unkillable {
			k.end(p)
		}
	}
	return nil
}

func (k *simKernel) Now() time.Time { return time.UnixMicro(int64(k.clock)) }

func (k *simKernel) Sleep(d time.Duration) {
	for range min(10, 1+int(d/time.Millisecond)) {
		k.turn()
	}
	k.clock += uint64(d.Microseconds())
}

// members returns the living members.
func (k *simKernel) members() (alive []proc.ID) {
	for _, p := range k.procs {
		if p.member && !p.Dead() {
			alive = append(alive, p.ID)
		}
	}
	return alive
}

// wronged returns the outsiders that were harmed.
func (k *simKernel) wronged() []proc.ID {
	out := k.killedOut
	for _, p := range k.procs {
		if !p.member && p.stopped {
			out = append(out, p.ID)
		}
	}
	return out
}
