package attack_test

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
)

// benchActs print how long one call took on average, in nanoseconds.
func benchActs() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"bench-tcp": func(a []string) error {
			return timeCalls(num(a[0]), unix.AF_INET, func(fd int) error {
				return unix.Connect(fd, &unix.SockaddrInet4{Port: num(a[1]), Addr: loop4})
			})
		},
		"bench-unix": func(a []string) error {
			l, err := net.Listen("unix", a[1])
			if err != nil {
				return err
			}
			go acceptAll(l)
			return timeCalls(num(a[0]), unix.AF_UNIX, func(fd int) error {
				return unix.Connect(fd, &unix.SockaddrUnix{Name: a[1]})
			})
		},
		"bench-sendmsg": func(a []string) error {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			buf := make([]byte, 1)
			return timeCalls(num(a[0]), 0, func(int) error {
				if err := unix.Sendmsg(pair[0], buf, nil, nil, 0); err != nil {
					return err
				}
				_, err := unix.Read(pair[1], buf)
				return err
			})
		},
	}
}

func acceptAll(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		c.Close()
	}
}

// timeCalls times a call on a new socket of a family, or without one for 0.
func timeCalls(n, family int, f func(fd int) error) error {
	var sum time.Duration
	for range n {
		fd := -1
		var err error
		if family != 0 {
			fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
		}
		start := time.Now()
		err = f(fd)
		sum += time.Since(start)
		if err != nil {
			return err
		}
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	fmt.Println(sum.Nanoseconds() / int64(n))
	return nil
}

// withoutBroker returns the plan that this machine would get if there could be no broker.
func (p *place) withoutBroker() *enforce.Plan {
	caps := enforce.Probe()
	caps.SeccompNotify = false
	return enforce.NewPlan(p.policy, caps, thisHost(), enforce.Options{})
}

// BenchmarkSocketCalls times connect(2) by TCP and to a Unix socket of the session, and
// sendmsg(2), which the broker does not see. It does so without zsbx, with only a filter, and with a broker.
func BenchmarkSocketCalls(b *testing.B) {
	if !brokerChecks() {
		b.Skip("the broker does not check sockets here")
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go acceptAll(l)
	p := newPlace(b)
	plans := map[string]*enforce.Plan{"bare": nil, "filter": p.withoutBroker(), "broker": p.plan()}
	for act, arg := range map[string]string{"bench-tcp": fmt.Sprint(l.Addr().(*net.TCPAddr).Port), "bench-unix": p.in + "/sock", "bench-sendmsg": ""} {
		for _, how := range []string{"bare", "filter", "broker"} {
			b.Run(strings.TrimPrefix(act, "bench-")+"/"+how, func(b *testing.B) {
				os.Remove(p.in + "/sock")
				exe := self(b)
				_, out := run(b, plans[how], &fork.Command{Path: exe, Args: []string{exe, fmt.Sprint(b.N), arg}, Dir: p.in,
					Env: []string{"ZSBX_TEST_ACT=" + act}})
				ns, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
				if err != nil {
					b.Fatal(out)
				}
				b.ReportMetric(ns, "ns/call")
			})
		}
	}
}

// BenchmarkBrokerStart times the start and the end of true(1), with and without a broker.
func BenchmarkBrokerStart(b *testing.B) {
	if !brokerChecks() {
		b.Skip("the broker does not check sockets here")
	}
	p := newPlace(b)
	plans := [2]*enforce.Plan{p.withoutBroker(), p.plan()}
	var took [2][]time.Duration
	for i := range 2 * b.N { // in turns, so that load affects both
		start := time.Now()
		run(b, plans[i%2], &fork.Command{Path: "/bin/true", Args: []string{"true"}, Keeper: &fork.Keeper{}})
		took[i%2] = append(took[i%2], time.Since(start))
	}
	for i, name := range []string{"filter", "broker"} {
		slices.Sort(took[i])
		b.ReportMetric(float64(took[i][b.N/2].Microseconds()), name+"-median-us")
		b.ReportMetric(float64(took[i][b.N/10].Microseconds()), name+"-tenth-us")
	}
}
