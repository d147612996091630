package enforce

import (
	"fmt"
	"io"
	"strings"

	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/enforce/seccomp"
)

// WriteLandlock writes the plan for Linux as text, one rule a line: the Landlock ruleset with
// the kernel's names of rights, what the seccomp filter decides and why, and the gaps. Fields
// are separated by tabs, and the first one says what the line is. The format is stable within a
// major version.
func (p *Plan) WriteLandlock(w io.Writer) error {
	var b strings.Builder
	if rs := p.Landlock; rs != nil {
		fmt.Fprintf(&b, "landlock\tabi %d\n", rs.ABI)
		fmt.Fprintf(&b, "handled\tfs\t%s\n", landlock.BitNames(rs.HandledFS, landlock.FSNames[:]))
		fmt.Fprintf(&b, "handled\tnet\t%s\n", landlock.BitNames(rs.HandledNet, landlock.NetNames[:]))
		fmt.Fprintf(&b, "scoped\t%s\n", landlock.BitNames(rs.Scoped, landlock.ScopeNames[:]))
		for _, r := range rs.Paths {
			rights := landlock.BitNames(r.Rights, landlock.FSNames[:])
			fmt.Fprintf(&b, "path\t%s\t%s\t%s\n", quotePath(r.Path), rights, r.Origin)
		}
		for _, r := range rs.Ports {
			fmt.Fprintf(&b, "port\t%d\t%s\t%s\n", r.Port, landlock.BitNames(r.Rights, landlock.NetNames[:]), r.Origin)
		}
	}
	if f := p.Seccomp; f != nil {
		fmt.Fprintf(&b, "seccomp\t%s\t%d instructions\n", f.Arch, len(f.Program))
		fmt.Fprintf(&b, "answer\tkilled\tother architectures\t\tthe numbers mean something else there\n")
		unknown := fmt.Sprintf("numbers above %d, x32", seccomp.LastSyscall)
		fmt.Fprintf(&b, "answer\tENOSYS\t%s\t\tunknown when this program was made\n", unknown)
		for _, d := range f.Decisions() {
			fmt.Fprintf(&b, "answer\t%s\t%s\t%s\t%s\n", d.Answer, strings.Join(d.Calls, " "), d.When, d.Why)
		}
	}
	if p.Broker.ChecksSockets() {
		fmt.Fprintf(&b, "mediated\t%s\n", p.Broker) // by the broker; the word is part of the format
	}
	if p.keepsSignals() {
		fmt.Fprintf(&b, "signals\t%s\n", p.signalLayer().Detail)
	}
	if mp := p.Mounts; mp != nil {
		fmt.Fprintf(&b, "mounts\t%s\n", strings.Join(mp.Why, ", "))
		for _, w := range mp.Writable {
			fmt.Fprintf(&b, "mount\twritable\t%s\n", quotePath(w))
		}
		for _, m := range mp.Mounts {
			fmt.Fprintf(&b, "mount\t%s\t%s\t%s\n", m.Kind, quotePath(m.Path), m.Origin)
		}
	}
	if p.DropCapabilities != 0 {
		fmt.Fprintf(&b, "capabilities\tkept\t%s\n", p.keptText())
	}
	for _, g := range p.Gaps {
		fmt.Fprintf(&b, "gap\t%s\t%s\t%s\t%s\n", g.Name, g.Kind, g.Promise, g.Why)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// quotePath quotes a path if it would break the format.
func quotePath(p string) string {
	q := fmt.Sprintf("%q", p)
	if q[1:len(q)-1] == p && !strings.ContainsAny(p, " ") {
		return p
	}
	return q
}
