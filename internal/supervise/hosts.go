package supervise

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/zsbx/zsbx/internal/egress"
	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/supervise/internal/job"
)

// This file tells what became of a command's connections to hosts outside: the first refusal of each
// kind at once, all in the log of hosts, and sums in the audit log.

// HostUse sums up what a command did with a host and a port, as far as one reason goes.
type HostUse struct {
	Host        string `json:"host"`
	Port        uint16 `json:"port,omitempty"`
	Rule        string `json:"rule,omitempty"`   // that allowed it
	Reason      string `json:"reason,omitempty"` // why it was refused, or failed
	Text        string `json:"text,omitempty"`   // the same for people
	Hint        string `json:"hint,omitempty"`   // what to type to have it allowed
	Program     string `json:"program,omitempty"`
	Connections int    `json:"connections,omitempty"`
	Refused     int    `json:"refused,omitempty"`
	Cut         int    `json:"cut,omitempty"` // connections that were reset before all bytes were passed on
	Sent        int64  `json:"sent,omitempty"`
	Received    int64  `json:"received,omitempty"`
}

// HostEvent is a line of the log of hosts.
type HostEvent struct {
	Time  time.Time `json:"time"`
	Event string    `json:"event"` // "refused", "opened", "closed" or "cut"
	HostUse
}

// hostKey is what one HostUse is about.
type hostKey struct {
	host   string
	port   uint16
	reason rule.Reason
}

// Limits of what is told. A command can make any number of refusals.
const (
	mostSaid  = 10    // refusals, each of another kind, while the command runs
	mostHosts = 200   // of HostUse
	mostExtra = 10000 // that are counted beyond
)

// hostNotes collects events. Its methods may be called from several goroutines.
type hostNotes struct {
	warn func(Warning)
	log  *os.File // nil for none

	mu    sync.Mutex
	queue []egress.Event
	busy  bool // a goroutine tells what is in the queue
	idle  sync.Cond
	uses  map[hostKey]*HostUse
	order []hostKey
	extra map[hostKey]bool // those for which there is no room in uses
	more  int              // events that are in no report
	said  int              // refusals that were told
	late  []Warning        // refusals that are told at the end
}

func newHostNotes(warn func(Warning), log *os.File) *hostNotes {
	n := &hostNotes{warn: warn, log: log, uses: map[hostKey]*HostUse{}, extra: map[hostKey]bool{}}
	n.idle.L = &n.mu
	return n
}

// mostQueued is how many events may wait until they are told. What is beyond is only counted.
const mostQueued = 4096

// event takes an event. It does not wait.
func (n *hostNotes) event(e egress.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.log == nil && (e.Kind == egress.Opened || e.Kind == egress.Closed) {
		n.count(use(e), "")
		return
	}
	if len(n.queue) >= mostQueued {
		n.more++
		return
	}
	n.queue = append(n.queue, e)
	if !n.busy {
		n.busy = true
		go n.tell()
	}
}

// tell tells what is in the queue.
func (n *hostNotes) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.queue) > 0 {
		all := n.queue
		n.queue = nil
		n.mu.Unlock()
		for _, e := range all {
			n.note(e)
		}
		n.mu.Lock()
	}
	n.busy = false
	n.idle.Broadcast()
}

// note counts one event, and tells it.
func (n *hostNotes) note(e egress.Event) {
	now := use(e)
	n.write(e.Kind, now)
	n.mu.Lock()
	first := n.count(now, e.Verdict.Reason)
	said := n.said
	if first && e.Kind == egress.Refused {
		n.said++
	}
	n.mu.Unlock()
	if first && e.Kind == egress.Refused && said < mostSaid {
		n.say(&e)
	}
}

// count adds to the sums, and reports whether it was the first of its kind. n.mu is locked.
func (n *hostNotes) count(now *HostUse, why rule.Reason) (first bool) {
	key := hostKey{now.Host, now.Port, why}
	u := n.uses[key]
	switch {
	case u != nil:
		u.add(now)
		return false
	case len(n.order) == mostHosts:
		if n.log == nil {
			n.more++
		}
		if n.extra[key] || len(n.extra) == mostExtra {
			return false
		}
		n.extra[key] = true
		return true
	}
	n.uses[key] = now
	n.order = append(n.order, key)
	return true
}

// say tells a refusal at once, but not on a screen that the command draws.
func (n *hostNotes) say(e *egress.Event) {
	w := Warning{Refused: e.Verdict.Line(e.Who), Failed: e.Verdict.Reason == rule.Upstream}
	if job.IsRaw() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.late = append(n.late, w)
		return
	}
	n.warn(w)
}

// use makes a HostUse of one event.
func use(e egress.Event) *HostUse {
	v := &e.Verdict
	u := &HostUse{Host: rule.Printable(v.Host), Port: v.Port, Program: rule.Printable(e.Who)}
	if v.Rule != nil {
		u.Rule = v.Rule.String()
	}
	switch e.Kind {
	case egress.Refused:
		u.Reason = string(v.Reason)
		u.Text = v.Text
		u.Hint = v.Flag
		u.Refused = 1
	case egress.Opened:
		u.Connections = 1
	case egress.Cut:
		u.Cut = 1
		u.Sent = e.Sent
		u.Received = e.Received
	case egress.Closed:
		u.Sent = e.Sent
		u.Received = e.Received
	}
	return u
}

func (u *HostUse) add(more *HostUse) {
	u.Connections += more.Connections
	u.Refused += more.Refused
	u.Cut += more.Cut
	u.Sent += more.Sent
	u.Received += more.Received
}

// write writes a line into the log of hosts. A pipe that nobody reads ends the log.
func (n *hostNotes) write(kind egress.Kind, u *HostUse) {
	if n.log == nil {
		return
	}
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	err := enc.Encode(HostEvent{Time: time.Now().UTC(), Event: string(kind), HostUse: *u})
	if err == nil {
		_ = n.log.SetWriteDeadline(time.Now().Add(fileTime)) // only files that can block have one
		_, err = n.log.Write(line.Bytes())
	}
	if err != nil {
		n.mu.Lock()
		n.log = nil
		n.mu.Unlock()
		n.warn(Warning{Text: fmt.Sprintf("--hosts-log: %v; nothing more is written to it", err)})
	}
}

// end waits until all events are told, and tells the rest.
func (n *hostNotes) end() []HostUse {
	n.mu.Lock()
	for n.busy {
		n.idle.Wait()
	}
	late := n.late
	n.late = nil
	var all []HostUse
	for _, k := range n.order {
		all = append(all, *n.uses[k])
	}
	unsaid := n.said - mostSaid
	more := n.more
	logged := n.log != nil
	full := len(n.extra) == mostExtra
	n.mu.Unlock()
	for _, w := range late {
		n.warn(w)
	}
	if unsaid > 0 {
		text := fmt.Sprintf("%d other hosts or ports were refused, or failed", unsaid)
		if full {
			text = "at least " + text
		}
		if !logged {
			text += "; --hosts-log FILE lists them"
		}
		n.warn(Warning{Text: text})
	}
	if more > 0 {
		n.warn(Warning{Text: fmt.Sprintf("%d events about connections are not in any report", more)})
	}
	for i := range all {
		if u := &all[i]; u.Cut > 0 {
			const text = "%s:%d was cut off, since the command has ended: not all that it wrote has arrived"
			n.warn(Warning{Text: fmt.Sprintf(text, u.Host, u.Port)})
		}
	}
	slices.SortStableFunc(all, func(a, b HostUse) int { return cmp.Compare(b.Connections, a.Connections) })
	return all
}

// noteHosts prepares the notes for a command that may reach hosts outside.
func (c *Command) noteHosts() error {
	if c.plan == nil || !c.plan.ReachesHosts() {
		return nil
	}
	var log *os.File
	if c.o.HostsLog != "" {
		var err error
		log, err = c.openFile("--hosts-log", c.o.HostsLog, os.O_APPEND, 0o600)
		if err != nil {
			return fmt.Errorf("--hosts-log: %w", err)
		}
	}
	c.outside = newHostNotes(c.warn, log)
	return nil
}

// tellHosts makes the broker tell what becomes of connections.
func (c *Command) tellHosts() {
	if c.outside != nil && c.broker != nil {
		c.broker.Events = append(c.broker.Events, c.outside.event)
		if c.o.ObserveHosts {
			c.broker.Events = append(c.broker.Events, c.reached.event)
		}
		if c.outside.log != nil {
			c.broker.NameAll()
		}
		c.broker.Warn = func(text string) { c.warn(Warning{Text: text}) }
	}
}

// drain waits until the relay has passed on what the command has sent. A signal ends that.
func (c *Command) drain() {
	if c.outside == nil || c.served == nil || !c.emptied {
		return
	}
	c.draining.Store(true)
	<-c.served
	c.draining.Store(false)
}

// endHosts tells the rest of what became of connections.
func (c *Command) endHosts() ([]HostUse, []rule.Rule) {
	if c.outside == nil {
		return nil, nil
	}
	all := c.outside.end()
	if c.outside.log != nil && !c.o.Keep {
		c.outside.log.Close()
	}
	return all, c.reached.all()
}
