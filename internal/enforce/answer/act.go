package answer

import (
	"io/fs"

	"github.com/zsbx/zsbx/internal/enforce/broker"
	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/enforce/seccomp"
	"github.com/zsbx/zsbx/policy"
)

// Op is an operation.
type Op string

// The operations. Act.Flags distinguishes kinds of Open; see Act.Verb.
const (
	Open     Op = "open"
	Make     Op = "make" // mkdir(2), mknod(2), symlink(2): Act.Mode has the type
	TempFile Op = "tempfile"
	Remove   Op = "remove"
	Rename   Op = "rename"
	Exchange Op = "exchange"
	Link     Op = "link"
	Truncate Op = "truncate"
	Exec     Op = "exec"
	Metadata Op = "metadata" // mode, owner, times, attributes
	Ioctl    Op = "ioctl"    // on a file that the command opened at Act.Path
	Connect  Op = "connect"  // to Act.Port, Act.Path or Act.Name
	Bind     Op = "bind"
	Signal   Op = "signal"
	Trace    Op = "trace"
	Call     Op = "call" // Act.Name with Act.Args, as a filter sees it
)

// Flags are the access modes of an Open or TempFile.
type Flags uint8

const (
	Read Flags = 1 << iota
	Write
	Trunc
	Creat
)

// Act is something that a command may do.
type Act struct {
	Op    Op
	Flags Flags

	// Path is absolute and canonical outside the command's mount namespace. For a missing file
	// it is the directory's path and the name.
	Path    string
	Mode    fs.FileMode // type bits of the file that exists or would be made
	Missing bool        // nothing is at Path

	// To is the second path of Rename, Exchange and Link.
	To         string
	ToMode     fs.FileMode
	ToExists   bool
	CrossMount bool // Path and To are on different mounts outside, too

	Port   uint16
	Host   string // a name or an address, for Port of a Connect; "" if it is not known
	Name   string // an abstract socket's name without the NUL byte, or a system call
	Args   [6]uint64
	Inside bool // Path is in the /proc directory of a process of the session
	Reopen bool // Path was reached through a descriptor's name in /proc: see World.Reopens
}

// Verb returns the operation as a word, for people and JSON.
func (a *Act) Verb() string {
	switch a.Op {
	case Make, TempFile:
		return "create"
	case Truncate:
		return "write"
	case Exchange:
		return "rename"
	case Open:
		return a.verbOfOpen()
	}
	return string(a.Op)
}

func (a *Act) verbOfOpen() string {
	switch {
	case a.Missing && a.Flags&Creat != 0:
		return "create"
	case a.Flags&(Write|Trunc) != 0:
		return "write"
	case a.Mode.IsDir():
		return "list"
	}
	return "read"
}

// Verdict is the answer to an act.
type Verdict string

// The verdicts. Undecided means that the plan can't know.
const (
	Allowed   Verdict = "allowed"
	Refused   Verdict = "refused"
	Undecided Verdict = "undecided"
)

// Means is the mechanism that refuses.
type Means string

const (
	Landlock Means = "landlock"
	Mounts   Means = "mounts"
	Seccomp  Means = "seccomp"
	Broker   Means = "sockets"
	Seatbelt Means = "seatbelt"
	Hosts    Means = "hosts" // zsbx, between the command and hosts outside

	// NoNewPrivs refuses no call, only the privileges that a program's file would give.
	NoNewPrivs Means = "no_new_privs"
)

// Answer is the plan's answer to an act.
type Answer struct {
	Verdict Verdict
	By      Means
	Errno   string // the error's name; "" if the act succeeds without effect
	At      string // the path that lacks a right, or that is mounted over

	Missing    uint64        // Landlock rights that At lacks
	Gains      uint64        // rights that the move would give a file
	Mount      *mounts.Mount // the mask or protection; nil if At is read-only because no rule allows writing
	CrossMount bool          // the paths are on different mounts in the command's namespace
	Why        string        // the filter rule's reason
}

// World is a plan in a form that can be asked.
type World struct {
	Landlock *landlock.Ruleset
	Mounts   *mounts.Plan
	Filter   *seccomp.Filter
	Broker   *broker.Policy
	Reopened []landlock.PathRule // rights for reopening the command's descriptors 0 to 2
	Override bool                // the command has CAP_DAC_OVERRIDE

	handled uint64 // the file rights that Landlock handles
	entries map[string]*entry
	ports   map[uint16]uint64
}

// entry has what the plan says about one path.
type entry struct {
	rights   uint64
	mount    *mounts.Mount // mask, protection or pin
	point    bool          // something is mounted on the path
	writable bool          // a tree that stays writable
	private  bool          // a private directory
	back     bool          // a path of the outside in a private directory
	readOnly bool          // a copy, /proc, or a path of the outside without write access
	noExec   bool
	reopened bool // see World.Reopens
}

// Index prepares a world for Decide.
func (w *World) Index() *World {
	w.entries = make(map[string]*entry)
	w.ports = make(map[uint16]uint64)
	if rs := w.Landlock; rs != nil {
		w.handled = rs.HandledFS
		for _, r := range rs.Paths {
			w.entry(r.Path).rights |= r.Rights
		}
		for _, r := range rs.Ports {
			w.ports[r.Port] |= r.Rights
		}
	}
	for _, r := range w.Reopened {
		e := w.entry(r.Path)
		e.rights |= r.Rights
		e.reopened = true
	}
	if w.Mounts != nil {
		w.indexMounts(w.Mounts)
	}
	return w
}

// entry returns the entry for a path, and makes it if it is missing.
func (w *World) entry(p string) *entry {
	e := w.entries[p]
	if e == nil {
		e = &entry{}
		w.entries[p] = e
	}
	return e
}

// indexMounts enters the paths on which the plan mounts something.
func (w *World) indexMounts(mp *mounts.Plan) {
	point := func(p string) *entry {
		e := w.entry(p)
		e.point = true
		return e
	}
	for _, p := range mp.Writable {
		point(p).writable = true
	}
	if len(mp.SSH) > 0 {
		point(mounts.SSHDir).readOnly = true
	}
	for i := range mp.Mounts {
		point(mp.Mounts[i].Path).mount = &mp.Mounts[i]
	}
	for _, d := range mp.Private {
		e := point(d.Path)
		e.private = true
		e.readOnly = d.Kind == mounts.Proc
		e.rights |= d.Rights
		for _, b := range d.Back {
			e := point(b.Path)
			e.back = true
			e.readOnly = b.Access&policy.Write == 0
			e.noExec = b.Access&policy.Exec == 0
		}
	}
}

// Decide returns the plan's answer to an act.
func (w *World) Decide(a *Act) Answer {
	switch a.Op {
	case Connect:
		return w.connect(a)
	case Bind:
		if a.Path != "" {
			return w.change(above(a.Path), landlock.FSMakeSock)
		}
		return w.port(a.Port, landlock.NetBindTCP)
	case Signal, Trace:
		return w.process(a)
	case Call:
		return w.call(a)
	case Rename, Exchange, Link:
		return w.move(a)
	}
	return w.file(a)
}

// Reopens reports whether a descriptor of the command leads to a path and so bypasses all
// mounts.
func (w *World) Reopens(p string) bool { return w.entries[p] != nil && w.entries[p].reopened }

// Unseen returns the answer for a path in a private directory that exists only outside.
func Unseen(p string) Answer { return refused(Mounts, "ENOENT", p) }

// IsUnseen reports whether an answer is Unseen's. Behind a mask there is a Mount.
func (a *Answer) IsUnseen() bool { return a.By == Mounts && a.Errno == "ENOENT" && a.Mount == nil }

func refused(by Means, errno, at string) Answer {
	return Answer{Verdict: Refused, By: by, Errno: errno, At: at}
}

func allowed() Answer { return Answer{Verdict: Allowed} }
