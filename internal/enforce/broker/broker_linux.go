package broker

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/egress"
	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/enforce/seccomp"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/host"
)

// Broker answers the calls that a filter hands over for one command and all its descendants. It
// owns the kernel's queue of these calls.
//
// Calls wait until the broker serves them. They fail with ENOSYS once it is closed or its
// process has ended.
//
// One goroutine leads: it takes calls from the queue and answers them. When a call takes longer
// than patience, another goroutine takes the lead, and the first one ends with its call. So a
// slow call, or one that the command keeps from ending, delays only its caller.
//
// A goroutine that blocks needs a thread, and Go's runtime ends a program that gets none. So at
// most maxBlocked block at a time. Those that wait for a descriptor block none: see until.
type Broker struct {
	policy *Policy
	pins   []*os.File // see pin
	hand   *handover  // receives the queue
	queue  queue

	// Record, if set, sees each call first. It either answers the call and returns nil, or
	// leaves the call to the broker and returns a function that the broker calls if it refuses.
	Record func(c *Call) (refused func(unix.Errno))

	// Relayed, if set, sees each call that is connected to the relay. It returns what is told why the
	// relay refuses the connection later.
	Relayed func(c *Call) (refused func(rule.Verdict))

	// Events are told what becomes of connections to hosts outside. They must not wait.
	Events []egress.Sink

	// Warn, if set, is told what keeps the command from all hosts.
	Warn func(string)

	identity identity // of this process's threads
	session  session  // the processes that may be signalled
	sockets  sessionSockets
	own      OwnNet
	door     door

	busy     atomic.Int32 // calls that are being answered
	deferred atomic.Int32 // connections that wait: see waitApart
	workers  sync.WaitGroup

	mu      sync.Mutex
	askers  map[[2]uint32]int // sockets to name servers, by the cookie of the command's end
	blocked int               // goroutines that lead, or answer a call and may block
	vacant  bool              // nobody leads, because maxBlocked was reached
	filled  int               // how often that has ended
	waiting map[*wait]bool    // for await

	retrying chan struct{} // has one value for each deferred call that is being tried again

	received, begun sync.Once // the queue was received, or given up; serving began, or never will

	over    chan struct{} // closed when serving is over
	stop    [2]int        // a pipe that wakes await; its writing end is closed when serving is over
	failure error         // why serving ended

	receiving atomic.Int32 // how many goroutines wait for a call or are about to: at most one
}

// Limits for calls that are being answered.
const (
	patience    = 5 * time.Millisecond // how long one may delay others
	maxBusy     = 256                  // how many at a time, since each has open descriptors
	maxDeferred = 256                  // how many connections may wait besides

	maxBlocked  = 5           // how many goroutines may block in one, or lead
	maxDelay    = time.Second // how long a call waits for one of them
	maxRetrying = 3           // how many deferred calls are tried again at a time
)

// Threads is how many threads Serve needs at most: maxBlocked, those of serve and of await,
// and those of deferred calls.
const Threads = maxBlocked + 2 + maxRetrying

var (
	errNoQueue  = errors.New("there is no queue of socket calls") // the command was not started
	errNoAnswer = errors.New("the kernel rejects the answers to socket calls")
	errIdentity = errors.New("a thread did not get its own credentials back")
)

// New returns the broker for a command that will be started, and the steps that install its
// filter.
func New(allowed *Policy, mem *fork.Memory, filter *seccomp.Filter) (*Broker, []fork.Step, error) {
	b := &Broker{
		policy:   allowed,
		over:     make(chan struct{}),
		retrying: make(chan struct{}, maxRetrying),
		askers:   map[[2]uint32]int{},
		waiting:  map[*wait]bool{},
		own:      OwnNet{line: -1},
	}
	err := b.pin()
	if err == nil {
		b.hand, err = newHandover()
	}
	if err == nil && allowed.Own {
		err = b.own.Open()
	}
	if allowed.Hosts != nil {
		b.openDoor()
	}
	if err != nil {
		return nil, nil, err
	}
	return b, b.hand.steps(mem, filter), nil
}

// pin keeps the inodes of allowed sockets. Otherwise a socket of another program could get the
// number of one that is removed. A path that leads to another inode by now is not allowed any
// more.
func (b *Broker) pin() error {
	if len(b.policy.Net.Unix) == 0 {
		return nil
	}
	p := *b.policy
	p.Net.Unix = nil
	for _, s := range b.policy.Net.Unix {
		if !s.Mode.IsDir() { // sockets in a directory are allowed by path
			var st unix.Stat_t
			f, err := os.OpenFile(s.Path, unix.O_PATH|unix.O_NOFOLLOW, 0)
			if fork.ShortageOf(err) != nil {
				return fmt.Errorf("an allowed socket: %w", err)
			}
			if err != nil || unix.Fstat(int(f.Fd()), &st) != nil || s.ID != (host.FileID{Dev: st.Dev, Ino: st.Ino}) {
				continue
			}
			b.pins = append(b.pins, f)
		}
		p.Net.Unix = append(p.Net.Unix, s)
	}
	b.policy = &p
	return nil
}

// Attach tells the broker when the command's process exists. With atOnce the broker serves from
// the command's first call on, which is its execve(2). Otherwise the caller calls Serve.
func (b *Broker) Attach(c *fork.Command, atOnce bool) {
	if b.policy.Own {
		b.own.Attach(c, b.policy.Hosts != nil)
	}
	forked := func() {
		b.hand.forked()
		if atOnce {
			go func() { _ = b.Serve() }() // returns if no command was started
		}
	}
	c.Commit = append(c.Commit, func(p *fork.Process) error {
		b.mu.Lock()
		b.session.top = p.KeeperPid
		b.mu.Unlock()
		forked()
		return nil
	})
	c.Cleanup = append(c.Cleanup, forked)
	// The keeper closes its copy, since only this process receives the queue.
	c.Before = append(c.Before, fork.Step{
		Name: "close(2) of the end for the queue of socket calls", Nr: unix.SYS_CLOSE,
		Args: [6]uintptr{uintptr(b.hand.parent)},
	})
}

// Queue receives the queue of a command that was started and returns its descriptor. While that
// is not readable there is nothing to serve. Queue returns -1 if there is no queue or it was
// received before.
func (b *Broker) Queue() int {
	fd := -1
	b.received.Do(func() {
		fd, b.failure = b.hand.receive()
		if b.failure == nil {
			b.queue = newQueue(fd)
		}
	})
	return fd
}

// Serve answers calls until the last process of the session has ended, and the relay has passed on
// what that has sent. A second call waits for the first.
func (b *Broker) Serve() error {
	b.Queue()
	b.begun.Do(b.serve)
	return b.failure
}

// Close releases a queue that nobody serves, because no command was started or all have ended.
func (b *Broker) Close() error {
	b.received.Do(b.hand.close)
	b.begun.Do(func() {
		b.queue.close()
		b.door.close()
		b.own.Close()
	})
	return nil
}

// finish ends serving. Only the first call's reason counts.
func (b *Broker) finish(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.isOver() {
		b.failure = err
		close(b.over)
		unix.Close(b.stop[1])
	}
}

func (b *Broker) isOver() bool {
	select {
	case <-b.over:
		return true
	default:
		return false
	}
}

func (b *Broker) serve() {
	if b.queue.control == nil {
		return
	}
	b.failure = unix.Pipe2(b.stop[:], unix.O_CLOEXEC|unix.O_NONBLOCK)
	if b.failure != nil {
		b.queue.close()
		return
	}
	if st, err := (caller{tid: unix.Gettid()}).status(); err != nil {
		b.finish(fmt.Errorf("this process's own credentials: %w", err))
	} else {
		b.identity = st.identity
	}
	b.mu.Lock()
	top := b.session.top
	b.mu.Unlock()
	var err error
	b.session.pidfd, err = unix.PidfdOpen(top, 0)
	if err != nil { // then no process counts as the session's
		b.session.pidfd = -1
	}
	b.queue.wakeFast()
	b.lead()
	b.await()
	b.drain()
	// Dup3 closes the queue but keeps its descriptor number in use, since a stuck goroutine may
	// still use the number.
	_ = unix.Dup3(b.stop[0], b.queue.fd, unix.O_CLOEXEC)
	go func() {
		b.workers.Wait()
		b.sockets.close()
		b.door.close()
		b.own.Close()
		b.queue.close()
		unix.Close(b.stop[0])
		unix.Close(b.session.pidfd)
	}()
}

// lead starts a goroutine that takes the lead. If too many block, one that is done leads on.
func (b *Broker) lead() {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.isOver():
	case b.blocked >= maxBlocked:
		b.vacant = true
	default:
		b.blocked++
		b.workers.Go(b.work)
	}
}

// work leads until another goroutine has taken the lead.
func (b *Broker) work() {
	c := &Call{broker: b}
	for b.next(c) {
		if c.relief == nil { // not before the first call: Go's runtime exits if it gets no poller for a timer
			c.relief = time.AfterFunc(patience, b.lead)
		} else {
			c.relief.Reset(patience)
		}
		c.answer()
		if !c.relief.Stop() && (c.waits || !b.leadOn()) {
			return
		}
	}
}

// leadOn reports whether a goroutine that was relieved must lead again, because nobody does.
func (b *Broker) leadOn() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	on := b.vacant
	if !on {
		b.blocked--
	}
	b.fill()
	return on
}

// relieve lets another goroutine lead at once. The goroutine that answers this call does not
// count as blocking any more.
func (c *Call) relieve() {
	b := c.broker
	c.waits = true
	b.mu.Lock()
	b.blocked--
	nobody := b.vacant
	b.fill()
	b.mu.Unlock()
	if c.relief.Stop() || nobody {
		b.lead()
	}
}

// fill notes that somebody leads. b.mu is locked.
func (b *Broker) fill() {
	if b.vacant {
		b.filled++
	}
	b.vacant = false
}

// crowded reports whether all goroutines that may block do so. It waits a moment for one to end, even if that one
// leads at once: then this one may block.
func (b *Broker) crowded() bool {
	b.mu.Lock()
	before := b.filled
	b.mu.Unlock()
	for end := time.Now().Add(maxDelay); ; time.Sleep(patience) {
		b.mu.Lock()
		all := b.blocked >= maxBlocked && b.filled == before
		b.mu.Unlock()
		if !all || time.Now().After(end) {
			return all
		}
	}
}

// next waits for the next call. It returns false when serving is over.
func (b *Broker) next(c *Call) bool {
	b.receiving.Add(1)
	defer b.receiving.Add(-1)
	for !b.isOver() {
		got, err := b.queue.receive(&c.notification)
		if err != nil {
			b.finish(fmt.Errorf("receiving a socket call: %w", err))
		}
		if got {
			c.from = caller{tid: int(c.pid)}
			c.descriptors = c.descriptors[:0]
			c.Verdict = nil
			return true
		}
		if b.queue.over() {
			b.finish(nil)
		}
	}
	return false
}

// await waits until the last process with the filter is gone, or serving is over for another
// reason. Then it wakes the goroutine that waits for a call. Before Linux 6.11 the kernel does
// not report that no call will come, so a signal must.
//
// Meanwhile it polls for all that wait in until.
func (b *Broker) await() {
	for !b.isOver() {
		polls, waits := b.polled()
		errno := patiently(func() unix.Errno { _, err := unix.Poll(polls, -1); return asErrno(err) })
		switch {
		case errno == unix.EINTR:
		case errno != 0:
			b.finish(fmt.Errorf("poll: %w", errno))
		case polls[0].Revents != 0:
			b.finish(nil)
		default:
			var woken [64]byte
			_, _ = unix.Read(b.stop[0], woken[:])
			b.wake(polls[2:], waits)
		}
	}
	for i := 0; i < attempts && b.receiving.Load() > 0; i++ {
		threads, _ := os.ReadDir("/proc/self/task")
		for _, t := range threads {
			tid, _ := strconv.Atoi(t.Name())
			interrupt(tid)
		}
		_, _ = unix.Poll(nil, 1) // a millisecond, without a Go timer
	}
}

// interrupt interrupts what a thread of this process waits for in the kernel. SIGURG is
// harmless: Go's runtime interrupts its threads with it all the time.
func interrupt(tid int) { _ = unix.Tgkill(unix.Getpid(), tid, unix.SIGURG) }
