package broker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/egress"
	"github.com/zsbx/zsbx/internal/egress/relay"
	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/enforce/hosts"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/procfs"
)

// With a network by name all internet sockets of the session are in its own network, too, where every
// address is local. What is sent by UDP to port 53 comes to the resolver, and nothing else goes
// anywhere. For a TCP connection to a host outside, the broker connects the socket to a listener
// of the relay's in the same network, and accepts it there at once. So nothing that a session does
// with its sockets reaches anything outside but by the relay, and the relay knows for each connection
// what it was made for.
//
// Where there can be no such network, the session's TCP sockets are in the machine's, and so are the
// relay's listeners. Then only the broker connects a socket of the session: Landlock refuses connect(2)
// and bind(2) to the command. It has no UDP sockets: see udp. Its own servers are closed.

// door is the way out of the session's network.
type door struct {
	net    *hosts.Net // nil: there is none
	shared bool       // the sockets are in the machine's network

	socket func(fork.SocketRequest) (int, unix.Errno) // makes one where the session's are

	patient context.Context // until Hurry
	hurry   func()

	mu     sync.Mutex
	inner  map[int]*listener          // of the relay, by the family of its address
	stop   []func()                   // of the resolver's sockets
	ports  map[netip.AddrPort]*opened // see publish
	served bool                       // the resolver has its sockets
	closed bool
	faults sync.Map // see tellNoNetwork

	admitted atomic.Int32 // connections from outside: see hasPlace
	crowded  sync.Once    // that there is no place is told
	passing  atomic.Int32 // connections of servers of the session that have not sent all to others yet
}

// openDoor prepares the way out. A session's own network does not exist yet.
func (b *Broker) openDoor() {
	b.door.net = hosts.New(b.policy.Hosts, hosts.Most(), func(e egress.Event) {
		for _, tell := range b.Events {
			tell(e)
		}
	})
	b.door.inner = map[int]*listener{}
	b.door.socket = b.own.Socket
	if !b.policy.Own {
		b.door.shared = true
		b.door.socket = machineSocket
	}
	b.door.patient, b.door.hurry = context.WithCancel(context.Background())
}

// machineSocket makes a socket in the machine's network.
func machineSocket(r fork.SocketRequest) (int, unix.Errno) {
	fd, err := unix.Socket(int(r.Family), int(r.Kind)|unix.SOCK_CLOEXEC, int(r.Protocol))
	return fd, asErrno(err)
}

// close closes the resolver's sockets and the relay's listeners.
func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.hurry != nil {
		d.hurry()
	}
	for _, stop := range d.stop {
		stop()
	}
	for _, l := range d.inner {
		unix.Close(l.fd)
	}
	d.inner = nil
	for _, l := range d.ports {
		l.Close()
	}
}

// serveNames makes the resolver's sockets, with the session's first UDP socket. Without one for IPv4 the
// session has no UDP.
func (b *Broker) serveNames() unix.Errno {
	d := &b.door
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.served || d.closed {
		return 0
	}
	for _, family := range []int32{unix.AF_INET, unix.AF_INET6} {
		fd, errno := b.own.Socket(fork.SocketRequest{Family: family, Kind: unix.SOCK_DGRAM, Port: domain})
		if errno == 0 {
			stop, err := d.net.ServeNames(fd, int(family))
			errno = asErrno(err)
			if err == nil {
				d.stop = append(d.stop, stop)
			}
		}
		if errno != 0 && family == unix.AF_INET {
			return errno
		}
	}
	d.served = true
	return 0
}

// isInner reports whether an address of the session's network may lead to a listener of the relay's. An
// unspecified one leads to an address of localhost that depends on the socket.
func (d *door) isInner(to netip.AddrPort) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	addr := to.Addr().WithZone("")
	for _, l := range d.inner {
		if l.addr.Port() == to.Port() && (l.addr.Addr() == addr || addr.IsUnspecified()) {
			return true
		}
	}
	return false
}

// setScope gives a link-local IPv6 address the scope of the only device that the session's network has. Whoever
// asks a name server of a link, as in "fe80::1%eth0", has that of a device of the machine's, or none.
func setScope(addr []byte) {
	const loopback = 1 // the number of the first device of each namespace
	to, ok := internetAddress(addr)
	if ok && to.Addr().Is6() && to.Addr().IsLinkLocalUnicast() {
		binary.NativeEndian.PutUint32(addr[24:], loopback)
	}
}

// outside answers a connection of a TCP socket of the session's network to an address that is not the
// session's own.
func (w *waiter) outside() (a answer, is bool) {
	b := w.broker
	to, ok := internetAddress(w.addr)
	if b.door.net == nil || !ok || !w.sock.tcp() || !b.door.shared && !b.own.has(w.sock.fd) {
		return a, false
	}
	if to.Port() == domain && !b.own.names.Load() {
		return w.join(to, b.door.net.ServeQuestions), true
	}
	host := !b.door.shared && (to.Addr() == fork.HostAddress4 || to.Addr() == fork.HostAddress6)
	if host || isLocalhost(to.Addr()) {
		if b.door.isInner(to) {
			return refused(unix.ECONNREFUSED), true
		}
		if b.door.shared {
			return w.refusedOwn(), true
		}
		return a, false
	}
	ask, v := b.door.net.Ask(to)
	if !b.door.shared && (!v.Allowed() || b.policy.Hosts.Observe) && isMachines(to.Addr()) {
		return a, false // a program that asks for this machine by its name means its own server; see refusedOwn
	}
	return w.reach(to, ask, v), true
}

// isMachines reports whether a device of this machine has an address.
func isMachines(addr netip.Addr) bool {
	all, _ := net.InterfaceAddrs() // harmless: then it counts as another machine's
	return slices.ContainsFunc(all, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr() == addr.WithZone("")
	})
}

// reach connects to a host outside, if that is allowed. A socket that does not block is connected
// to the relay at once. For others the relay dials first, so that a failure is the call's.
func (w *waiter) reach(to netip.AddrPort, ask rule.Ask, v rule.Verdict) answer {
	b := w.broker
	target := relay.Target{Ask: ask, Who: sync.OnceValue(w.from.name)}
	if !v.Allowed() && !b.door.net.Asks(&v) {
		w.Verdict = &v
		b.door.net.Events(egress.Event{Kind: egress.Refused, Verdict: v, Who: w.from.name()})
		return refused(unix.EACCES)
	}
	flags, err := unix.FcntlInt(uintptr(w.sock.fd), unix.F_GETFL, 0)
	if err != nil {
		return refused(asErrno(err))
	}
	if flags&unix.O_NONBLOCK == 0 && unconnected(w.sock.fd) {
		return answer{later: func(c *Call) answer { return w.of(c).dial(to, target) }}
	}
	target.Refused = w.relayed()
	return w.join(to, func(c net.Conn) { b.door.net.Relay.Serve(c, target, nil) })
}

// relayed returns what is told why the relay refuses the connection, or nil.
func (w *waiter) relayed() func(rule.Verdict) {
	if w.broker.Relayed == nil {
		return nil
	}
	return w.broker.Relayed(w.Call)
}

// resolvers are sockets of programs that look up any name for whoever asks. A question to one of them
// would carry data out, whatever name servers may be asked.
var resolvers = []string{
	"/run/systemd/resolve/io.systemd.Resolve",
	"/run/systemd/resolve/io.systemd.Resolve.Monitor",
	"/run/nscd/socket",
	"/run/avahi-daemon/socket",
	"/var/lib/sss/pipes/nss",
}

// resolvesNames reports whether a socket is one of the resolvers.
func resolvesNames(id host.FileID) bool {
	return slices.ContainsFunc(resolvers, func(path string) bool {
		var st unix.Stat_t
		err := unix.Stat(path, &st)
		return err == nil && id == host.FileID{Dev: st.Dev, Ino: st.Ino}
	})
}

// of returns the waiter for a copy of its call.
func (w *waiter) of(c *Call) *waiter {
	out := *w
	out.Call = c
	return &out
}

// dialed is what Relay.Dial has returned.
type dialed struct {
	up  *relay.Up
	err error
}

// dial waits for a connection outside. It ends as a connection by the kernel would: by a signal, or
// by SO_SNDTIMEO.
func (w *waiter) dial(to netip.AddrPort, target relay.Target) answer {
	b := w.broker
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan dialed, 1)
	go func() {
		up, err := b.door.net.Relay.Dial(ctx, target)
		done <- dialed{up, err}
	}()
	late := sendTimeout(w.sock.fd)
	look := time.NewTicker(maxPause)
	defer look.Stop()
	errno := unix.Errno(0)
	for errno == 0 {
		select {
		case d := <-done:
			if d.err != nil {
				w.Verdict = verdictOf(d.err)
				return refused(hosts.Errno(d.err))
			}
			target.Refused = w.relayed()
			a := w.join(to, func(c net.Conn) { b.door.net.Relay.Serve(c, target, d.up) }, d.up)
			if a.later != nil {
				a = a.later(w.Call)
			}
			return a
		case <-b.over:
			errno = unix.EINTR
		case <-late:
			errno = unix.EINPROGRESS
		case <-look.C:
			if w.from.signalled() {
				errno = restart
			}
		}
	}
	go func() {
		if d := <-done; d.up != nil {
			d.up.Close()
		}
	}()
	return refused(errno)
}

// verdictOf returns the verdict in an error of Relay.Dial.
func verdictOf(err error) *rule.Verdict {
	refusal, is := errors.AsType[*relay.Refusal](err)
	if !is {
		return nil
	}
	return &refusal.Verdict
}

// name names the program of a thread, for messages: what it calls itself, which may be anything.
func (c caller) name() string {
	pid := c.process
	if pid == 0 {
		pid = ProcessOf(c.tid)
	}
	if pid == 0 {
		return "pid " + strconv.Itoa(c.tid)
	}
	comm, err := os.ReadFile(procfs.Path(pid, "comm"))
	if err != nil || len(comm) < 2 {
		return "pid " + strconv.Itoa(pid)
	}
	return string(comm[:len(comm)-1]) + ", pid " + strconv.Itoa(pid)
}

// drain waits until what the session has sent is passed on: by the relay, and from servers of the session
// to others. Each connection of the relay's that is cut off is an event.
func (b *Broker) drain() {
	d := &b.door
	if d.net == nil {
		return
	}
	const longest = 30 * time.Second
	ctx, cancel := context.WithTimeout(d.patient, longest)
	defer cancel()
	d.net.Relay.Drain(ctx)
	for d.passing.Load() > 0 && ctx.Err() == nil {
		time.Sleep(maxPause)
	}
	n := d.passing.Load()
	if n > 0 && b.Warn != nil {
		const text = "%d connections to the command's servers were cut off: not all that it wrote has arrived"
		b.Warn(fmt.Sprintf(text, n))
	}
}

// NameAll makes all events name the program. It comes before the command's start.
func (b *Broker) NameAll() {
	if b.door.net != nil {
		b.door.net.Relay.Named = true
	}
}

// Hurry cuts off connections to hosts outside for which Serve still waits once the session has
// ended.
func (b *Broker) Hurry() {
	if b.door.net != nil {
		b.door.hurry()
	}
}
