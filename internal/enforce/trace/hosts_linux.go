package trace

import (
	"github.com/zsbx/zsbx/internal/egress"
	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/enforce/answer"
	"github.com/zsbx/zsbx/internal/enforce/broker"
)

// This file records why hosts outside are refused: at connect(2), by the relay after it, or when their
// names are looked up. zsbx itself refuses them, so all of it is proved. What is allowed and can't be
// reached would fail without zsbx, too.

// refusedHost sets that a host is refused, and the program that is.
func (l *look) refusedHost(v *rule.Verdict, errno string) {
	l.host(v, errno)
	l.refusedBy(l.Answer)
}

// host sets what is refused, and why.
func (x *Refusal) host(v *rule.Verdict, errno string) {
	x.Act = answer.Act{Op: answer.Connect, Host: v.Host, Port: v.Port}
	x.Answer = answer.Answer{Verdict: answer.Refused, By: answer.Hosts, Errno: errno}
	x.Errno = errno
	x.Verdict = v
	x.Reason = v.Reason
	x.Ordinary = v.Reason == rule.Upstream
	x.Proved = true
}

// Relayed returns what records that the relay refuses the connection that a call has made. The
// program sees that as a reset connection.
func (r *Recorder) Relayed(c *broker.Call) (refused func(rule.Verdict)) {
	l := c.Notes.(*look)
	l.refusedBy(answer.Answer{})
	x := l.Refusal
	return func(v rule.Verdict) {
		x := x
		x.host(&v, "ECONNRESET")
		r.mu.Lock()
		x.made = x.thread.made
		r.mu.Unlock()
		r.add(x, 0)
	}
}

// Event records a name that is not resolved, since it is refused or can't be. Whose question that was is
// not known. The errors are those of getaddrinfo(3).
func (r *Recorder) Event(e egress.Event) {
	if e.Kind != egress.Refused || !e.Lookup {
		return
	}
	x := Refusal{Count: 1}
	errno := "EAI_NONAME"
	if e.Verdict.Reason == rule.Upstream {
		errno = "EAI_AGAIN"
	}
	x.host(&e.Verdict, errno)
	r.add(x, 0)
}
