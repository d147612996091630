package track

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"
)

// simKernel is a process table with a life of its own: before every call that
// the hunt makes, all living processes get a turn. It is as hostile as its
// hazards say.
type simKernel struct {
	hazards
	rng   *rand.Rand
	procs map[int]*simProc
	order []int  // the pids, sorted: the order of a map does not come from the seed
	next  int    // the next pid to try
	clock uint64 // microseconds since 1970
	self  int

	calls     int
	killedOut []ProcID // outsiders that SIGKILL reached: must stay empty
	forgery   error    // of the markers
}

// hazards is what a schedule has in store. Rates are in thousandths a turn.
type hazards struct {
	pids       int // size of the pid space: small ones are reused soon
	outsiders  int
	churn      int // outsiders fork children that end soon
	hoppers    int // members that fork and exit, over and over
	hop        int // how often they do
	breeders   int // members that fork and stay
	breed      int
	sleepers   int  // members that do nothing
	linger     int  // of those that end, how many stay zombies for a while
	zombies    int  // ended members that nobody has waited for
	foreign    int  // members that may not be signalled
	unkillable int  // members that SIGKILL does not end
	nonsense   int  // how often a probe of anybody but this process gives nonsense
	mute       bool // the name pair never answers
	noMarker   int  // after so many calls the "deny" marker is deleted; 0 for never
	racyList   bool // processes can end while the list is made
	hidden     bool // and then are not even counted
	tick       int  // microseconds that a turn takes; 0 for 100
}

type simProc struct {
	row
	member     bool
	kind       string // "hopper", "breeder", "brief", "" for those that do nothing
	boxed      int    // of outsiders: 0 no profile, 1 one that denies all, 2 one that allows all
	foreign    bool
	unkillable bool
	stopped    bool
}

func newSimKernel(h hazards, seed uint64) *simKernel {
	k := &simKernel{hazards: h, rng: rand.New(rand.NewPCG(seed, 1)), procs: map[int]*simProc{}, next: 2, clock: 1e15}
	k.add(&simProc{row: row{ProcID: ProcID{1, 1}}})
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
		p.zombie = j >= 0 && j < h.zombies
		p.foreign = j >= h.zombies && j < h.zombies+h.foreign
		p.unkillable = j >= h.zombies+h.foreign
	}
	return k
}

// spawn makes a process. Start times are unique, pids are not for long.
func (k *simKernel) spawn(parent int, member bool, kind string) *simProc {
	for range k.pids {
		pid := k.next
		if k.next++; k.next >= k.pids {
			k.next = 2
		}
		if k.procs[pid] == nil {
			k.clock++
			p := &simProc{row: row{ProcID: ProcID{pid, k.clock}, parent: parent, group: pid}, member: member, kind: kind}
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
	if !p.zombie && k.rng.IntN(1000) < k.linger {
		p.zombie, p.kind = true, "lingering"
		return
	}
	i, _ := slices.BinarySearch(k.order, p.Pid)
	k.order = slices.Delete(k.order, i, i+1)
	delete(k.procs, p.Pid)
	for _, c := range k.procs {
		if c.parent == p.Pid {
			c.parent = 1
		}
	}
}

// turn lets everybody live for a moment.
func (k *simKernel) turn() {
	k.calls++
	k.clock += uint64(cmp.Or(k.tick, 100))
	if k.noMarker > 0 && k.calls >= k.noMarker && k.forgery == nil {
		k.forgery = errors.New("a marker is missing")
	}
	for i, pid := range slices.Clone(k.order) {
		p := k.procs[pid]
		if p == nil || p.stopped || pid == k.self || i == 0 {
			continue
		}
		chance := k.rng.IntN(1000)
		switch {
		case p.zombie:
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

func (k *simKernel) snapshot() (snapshot, error) {
	k.turn()
	var s snapshot
	var ids []ProcID
	for _, pid := range slices.Clone(k.order) {
		ids = append(ids, k.procs[pid].ProcID)
	}
	for i, id := range ids {
		if k.racyList && i%4 == 0 {
			k.turn()
		}
		switch p := k.procs[id.Pid]; {
		case p != nil && p.ProcID == id:
			s.rows = append(s.rows, p.row)
		case !k.hidden:
			s.gone++
		}
	}
	return s, nil
}

func (k *simKernel) lookup(pid int) (row, error) {
	k.turn()
	if p := k.procs[pid]; p != nil {
		return p.row, nil
	}
	return row{}, syscall.ESRCH
}

func (k *simKernel) markers() error { return k.forgery }

func (k *simKernel) probe(pid int) answers {
	k.turn()
	p := k.procs[pid]
	if p != nil && pid != k.self && k.rng.IntN(1000) < k.nonsense {
		return k.rubbish(p.member)
	}
	a := k.truth(p)
	if k.mute {
		a.nameAllow, a.nameDeny = noAnswer, noAnswer
	}
	return a
}

// truth is what sandbox_check says of a process.
func (k *simKernel) truth(p *simProc) answers {
	switch {
	case p == nil || p.zombie:
		return answers{1, 1, 1, 1, 1}
	case p.member:
		return answers{1, allowed, denied, allowed, denied}
	case p.boxed == 0:
		return answers{0, noAnswer, noAnswer, noAnswer, noAnswer}
	case p.boxed == 1:
		return answers{1, 1, 1, 1, 1}
	case k.forgery != nil:
		// Everything is allowed, but the path that is missing.
		return answers{1, 0, 0, 0, 1}
	}
	return answers{1, 0, 0, 0, 0}
}

// rubbish is anything but a clear lie: it neither gives an outsider the exact
// fingerprint, nor a member the exact answers of somebody else. Nothing could
// see through those.
func (k *simKernel) rubbish(isMember bool) answers {
	lie := member
	if isMember {
		lie = outside
	}
	for {
		n := func() int { return []int{-1, 0, 1, 2, 42}[k.rng.IntN(5)] }
		a := answers{n(), n(), n(), n(), n()}
		if a.verdict(true) != lie && a.verdict(false) != lie {
			return a
		}
	}
}

func (k *simKernel) signal(pid int, sig syscall.Signal) error {
	k.turn()
	p := k.procs[pid]
	switch {
	case pid < 0 || p == nil || p.zombie:
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
			k.killedOut = append(k.killedOut, p.ProcID)
		}
		if !p.unkillable {
			k.end(p)
		}
	}
	return nil
}

func (k *simKernel) now() time.Time { return time.UnixMicro(int64(k.clock)) }

func (k *simKernel) sleep(d time.Duration) {
	for range min(10, 1+int(d/time.Millisecond)) {
		k.turn()
	}
	k.clock += uint64(d.Microseconds())
}

// members are the living members, dead ones left out.
func (k *simKernel) members() (alive []ProcID) {
	for _, p := range k.procs {
		if p.member && !p.zombie {
			alive = append(alive, p.ProcID)
		}
	}
	return alive
}

// wronged are the outsiders that came to harm.
func (k *simKernel) wronged() []ProcID {
	out := k.killedOut
	for _, p := range k.procs {
		if !p.member && p.stopped {
			out = append(out, p.ProcID)
		}
	}
	return out
}
