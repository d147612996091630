package fork

import (
	"syscall"
	"time"
)

// startClock begins to count the time of a command that has no keeper to do so.
func (p *Process) startClock(c *Command) {
	p.limit, p.began = c.Limit, time.Now()
	if p.KeeperPid == 0 && p.limit.Time > 0 {
		p.mu.Lock() // it may be over before it is noted
		defer p.mu.Unlock()
		p.alarm = time.AfterFunc(p.limit.Time, p.timeOver)
	}
}

// timeOver asks the command to end, and the second time kills it.
func (p *Process) timeOver() {
	p.mu.Lock()
	again := p.late
	p.late = true
	if !again && !p.gone && p.limit.Kill > 0 {
		p.alarm = time.AfterFunc(p.limit.Kill, p.timeOver)
	}
	p.mu.Unlock()
	if again {
		_ = p.kill()
		return
	}
	_ = p.signal(syscall.SIGTERM)
	_ = p.signal(syscall.SIGCONT)
}

// exitedOwn is the event that says that a command without a keeper has ended:
// first that its time was over, if it was. p.mu is held.
func (p *Process) exitedOwn(ws syscall.WaitStatus) Event {
	p.gone, p.status = true, ws
	if p.alarm != nil {
		p.alarm.Stop()
	}
	if p.late {
		return Event{Kind: TimedOut}
	}
	return p.lastOwn()
}

// lastOwn is the event after TimedOut, and the one after that.
func (p *Process) lastOwn() Event {
	if p.exited {
		p.ended = true
		return Event{Kind: Emptied}
	}
	p.exited = true
	return Event{Kind: Exited, Status: p.status}
}
