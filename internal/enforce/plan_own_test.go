package enforce

import (
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce/answer"
	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/resolve"
)

// TestOwnNet: without network the session has a network of its own where the machine can keep
// promises about it, and the plan says why elsewhere.
func TestOwnNet(t *testing.T) {
	h := treeHost(map[string]string{"/w/x": ""})
	for _, c := range []struct {
		name string
		caps func(*Caps)
		opts Options
		want string // what the plan says of localhost begins with it
		tcp  bool   // Landlock handles TCP
	}{
		{name: "a user", want: "servers of the session only", tcp: true},
		{name: "root", caps: func(c *Caps) { c.Privileged, c.Capabilities = true, 1<<capNetAdmin }, want: "servers of", tcp: true},
		{name: "Landlock checks Unix sockets", caps: func(c *Caps) { c.Landlock = 11 }, want: "servers of", tcp: true},
		{name: "an old Landlock", caps: func(c *Caps) { c.Landlock = 2 }, want: "servers of the session only"},
		{name: "root in a container", caps: func(c *Caps) { c.Privileged = true }, want: "closed, for servers of the session too: CAP_NET_ADMIN"},
		{name: "no broker", caps: func(c *Caps) { c.SeccompNotify, c.SeccompNotifyReason = false, "nested" }, want: "closed, for servers of the session too: nested"},
		{name: "no user namespace", caps: func(c *Caps) { c.MountNS, c.MountReason = false, "AppArmor" }, want: "closed, for servers of the session too: AppArmor"},
		{name: "no network namespace", caps: func(c *Caps) { c.NetReason = "refused" }, want: "closed, for servers of the session too: refused"},
		{name: "no mounts", opts: Options{Accepted: []string{GapMetadata, GapIPC, GapTerminals}}, want: "closed, for servers of the session too: that comes with"},
	} {
		t.Run(c.name, func(t *testing.T) {
			caps := canMount()
			caps.Seccomp, caps.SeccompNotify, caps.Arch = true, true, "amd64"
			if c.caps != nil {
				c.caps(&caps)
			}
			r := asked(h, "", []string{"/w"})
			r.Net.Mode = resolve.NetNone
			p := NewPlan(r, caps, h, c.opts)
			said := ""
			for _, l := range p.Layers() {
				if l.Name == "localhost" {
					said = l.Detail
				}
			}
			if !strings.HasPrefix(said, c.want) {
				t.Errorf("it says %q, want %q", said, c.want)
			}
			own := strings.HasPrefix(c.want, "servers")
			if (p.Broker != nil && p.Broker.Own) != own {
				t.Errorf("own: %v", !own)
			}
			answer := p.Seccomp.Answer("socket", [6]uint64{2, 1, 0})
			if want := map[bool]string{true: "decided by the broker", false: "EACCES"}[own]; answer != want {
				t.Errorf("the filter says %s, want %s", answer, want)
			}
			handled := p.Landlock.HandledNet
			if handled&(landlock.NetBindUDP|landlock.NetConnectSendUDP) != 0 {
				t.Error("Landlock would refuse the session's own datagrams")
			}
			const tcp = landlock.NetBindTCP | landlock.NetConnectTCP
			if c.tcp && handled&tcp != tcp {
				t.Errorf("Landlock handles %#x", handled)
			}
		})
	}
	r := asked(h, "", []string{"/w"})
	for _, l := range NewPlan(r, canMount(), h, Options{}).Layers() {
		if l.Name == "localhost" {
			t.Errorf("with a network it says %q", l.Detail)
		}
	}
}

// TestSharedNet: with a network by name, and no network of the session's own, its TCP sockets are in the
// machine's, if Landlock refuses the command to connect them. Elsewhere no host is reached.
func TestSharedNet(t *testing.T) {
	h := treeHost(map[string]string{"/w/x": ""})
	const (
		own    = "reached by name, through zsbx, which answers for every name server"
		shared = own + "; UDP sockets are pairs of Unix sockets, so that musl and c-ares resolve no names"
	)
	for _, c := range []struct {
		name string
		caps func(*Caps)
		want string // what the plan says of hosts
	}{
		{name: "a network", want: own},
		{name: "no user namespace", caps: func(c *Caps) { c.MountNS, c.MountReason = false, "AppArmor" }, want: shared},
		{name: "root in a container", caps: func(c *Caps) { c.Privileged = true }, want: shared},
		{name: "no network namespace", caps: func(c *Caps) { c.NetReason = "refused" }, want: shared},
		{name: "Landlock checks Unix sockets", caps: func(c *Caps) { c.Landlock, c.NetReason = 11, "refused" }, want: shared},
		{name: "an old Landlock", caps: func(c *Caps) { c.Landlock, c.NetReason = 3, "refused" },
			want: "not reached: refused; without that Landlock ABI 4 (Linux 6.7) is needed, this kernel has 3"},
		{name: "no broker", caps: func(c *Caps) { c.SeccompNotify, c.SeccompNotifyReason = false, "nested" }, want: "not reached: a broker is needed: nested"},
	} {
		t.Run(c.name, func(t *testing.T) {
			caps := canMount()
			caps.Landlock, caps.Seccomp, caps.SeccompNotify, caps.Arch = 8, true, true, "amd64"
			if c.caps != nil {
				c.caps(&caps)
			}
			r := asked(h, "", []string{"/w"})
			r.Net.Mode = resolve.NetHosts
			p := NewPlan(r, caps, h, Options{})
			for _, l := range p.Layers() {
				if l.Name == "hosts" && l.Detail != c.want {
					t.Errorf("it says %q, want %q", l.Detail, c.want)
				}
				if l.Name == "localhost" && strings.HasPrefix(l.Detail, "closed") != (c.want != own) {
					t.Errorf("localhost: %q", l.Detail)
				}
			}
			if gap := slices.ContainsFunc(p.Gaps, func(g Gap) bool { return g.Name == GapHosts }); gap == p.ReachesHosts() {
				t.Errorf("gaps: %v", p.Gaps)
			}
			tcp := p.Seccomp.Answer("socket", [6]uint64{2, 1, 0})
			udp := p.Seccomp.Answer("socket", [6]uint64{2, 2, 0})
			want := map[string]string{own: "decided by the broker", shared: "allowed"}[c.want]
			if want == "" {
				want = "EACCES"
			}
			if tcp != want || (udp == "EACCES") != (want == "EACCES") || udp == "allowed" {
				t.Errorf("the filter says %s to TCP, %s to UDP", tcp, udp)
			}
			serves := p.Decide(Act{Op: answer.Bind, Port: 8080})
			if c.want == shared && !strings.HasPrefix(serves.Reason, "servers of the session are closed here: ") {
				t.Errorf("to listen: %s", serves.Reason)
			}
			const handled = landlock.NetBindTCP | landlock.NetConnectTCP
			if c.want == shared && (p.Landlock.HandledNet&handled != handled || len(p.Landlock.Ports) > 0) {
				t.Errorf("Landlock handles %#x, with %v", p.Landlock.HandledNet, p.Landlock.Ports)
			}
		})
	}
}
