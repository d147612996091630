package track

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/track/cgroup"
)

// BenchmarkStore measures a session's costs on disk: begin, record, remove.
func BenchmarkStore(b *testing.B) {
	st := tempStore(b)
	o := Options{Store: st, Tracker: Subtree, caps: &caps{os: "linux", noDomain: "-", noGroup: "-"}}
	took, report := medians(b)
	defer report()
	for b.Loop() {
		start := time.Now()
		s, err := Begin(o)
		if err != nil {
			b.Fatal(err)
		}
		s.record.Argv, s.record.Dir = []string{"true"}, "/"
		s.record.Holder = Holder{Tracker: Subtree, Keeper: ProcID{Pid: 4711, Start: 1234567}}
		if err := s.store(); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
		took(start)
	}
}

// medians collects times. A disk that writes now and then, or a busy machine, would distort the
// mean.
func medians(b *testing.B) (took func(since time.Time), report func()) {
	var all []time.Duration
	return func(since time.Time) { all = append(all, time.Since(since)) }, func() {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Nanoseconds()), "median-ns/op")
		b.ReportMetric(float64(all[0].Nanoseconds()), "min-ns/op")
	}
}

// BenchmarkRun compares a command in a session with one that is only forked and with one below
// a bare keeper. They take turns, in a new order each time, so that other load affects all of
// them. The medians count.
func BenchmarkRun(b *testing.B) {
	path, err := exec.LookPath("true")
	if err != nil {
		b.Fatal(err)
	}
	path, _ = filepath.EvalSymlinks(path)
	c := helper(b, "true")
	c.Path = path
	started := func(p *fork.Process, err error) error {
		for err == nil {
			var ev fork.Event
			ev, err = p.Next()
			if ev.Kind == fork.Emptied {
				return p.Close()
			}
		}
		return err
	}
	names := []string{"none", "keeper"}
	ways := map[string]func() error{
		"none": func() error { return started(fork.Start(c)) },
		"keeper": func() error {
			k := *c
			k.Keeper = &fork.Keeper{}
			return started(fork.Start(&k))
		},
	}
	caps := probe(Options{Tracker: Cgroup})
	for _, k := range []Kind{Domain, Cgroup, Subtree} {
		if _, err := caps.choose(Options{Tracker: k, Scoped: true}); err != nil {
			continue
		}
		o := Options{Store: tempStore(b), Tracker: k, Scoped: true, Confined: true}
		if k != Domain {
			o.caps = &caps
		}
		names = append(names, string(k))
		ways[string(k)] = func() error { return runSession(b, o, c) }
	}
	took := make(map[string][]time.Duration)
	for b.Loop() {
		for _, i := range rand.Perm(len(names)) {
			start := time.Now()
			if err := ways[names[i]](); err != nil {
				b.Fatal(names[i], err)
			}
			took[names[i]] = append(took[names[i]], time.Since(start))
		}
	}
	for _, n := range names {
		slices.Sort(took[n])
		b.ReportMetric(float64(took[n][len(took[n])/2].Microseconds()), n+"-µs")
	}
}

// runSession runs c in a new session.
func runSession(b *testing.B, o Options, c *fork.Command) error {
	s, err := Begin(o)
	if err != nil {
		return err
	}
	d := *c
	if err := s.Start(&d); err != nil {
		return err
	}
	for {
		ev, err := s.Next()
		if err != nil {
			return err
		}
		if ev.Kind == fork.Emptied {
			break
		}
	}
	_, err = s.Close(b.Context())
	return err
}

// BenchmarkList lists 500 sessions whose keepers live.
func BenchmarkList(b *testing.B) {
	st := tempStore(b)
	keepSessions(b, st, 500)
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			if ls, err := st.List(); err != nil || len(ls) != 500 {
				b.Fatal(len(ls), err)
			}
		}
	})
	b.Run("survey", func(b *testing.B) { // what ps does
		for b.Loop() {
			if ls, _, err := st.Survey(); err != nil || len(ls) != 500 {
				b.Fatal(len(ls), err)
			}
		}
	})
	b.Run("begin", func(b *testing.B) {
		o := Options{Store: st, Tracker: Subtree, caps: &caps{os: "linux", noDomain: "-", noGroup: "-"}, Name: "one"}
		for b.Loop() {
			s, err := Begin(o)
			if err != nil {
				b.Fatal(err)
			}
			_, _ = s.Close(b.Context())
		}
	})
}

// keepSessions leaves n kept sessions, each with one process, until the test
// ends.
func keepSessions(t testing.TB, st *Store, n int) {
	t.Helper()
	for i := range n {
		c := runShell(t, "sleep 1000 &")
		s, err := Begin(Options{Store: st, Tracker: Subtree, Keep: true, Name: fmt.Sprintf("kept-%d", i)})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(c); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Wait(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = st.Reap(deadline(t), s.ID()) })
		if _, err := s.Close(deadline(t)); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(10 * time.Millisecond)
}

// BenchmarkReap ends 1000 idle processes: by cgroup.kill and waiting until the group is empty,
// and by closing a session with each tracker.
func BenchmarkReap(b *testing.B) {
	caps := probe(Options{Tracker: Cgroup})
	ready := func(b *testing.B, start func(c *fork.Command)) {
		r, w, err := os.Pipe()
		if err != nil {
			b.Fatal(err)
		}
		defer r.Close()
		c := attackCommand("thousand")
		c.Files[1] = w
		start(c)
		w.Close()
		if _, err := r.Read(make([]byte, 6)); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("cgroup.kill", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			g, err := cgroup.Make(caps.group, "zsbx-bench")
			if err != nil {
				b.Skip(err)
			}
			procs, err := g.OpenFile("cgroup.procs", unix.O_WRONLY)
			if err != nil {
				b.Fatal(err)
			}
			var p *fork.Process
			ready(b, func(c *fork.Command) {
				c.Steps = append([]fork.Step{enterStep(c.Memory(), procs)}, c.Steps...)
				p, err = fork.Start(c)
				if err != nil {
					b.Fatal(err)
				}
			})
			b.StartTimer()
			for left := true; left; {
				left, err = g.Kill()
				if err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			_, _ = p.Next()
			_ = procs.Close()
			if err := g.Remove(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	for _, k := range []Kind{Domain, Cgroup, Subtree} {
		b.Run(string(k), func(b *testing.B) {
			if _, err := caps.choose(Options{Tracker: k, Scoped: true}); err != nil {
				b.Skip(err)
			}
			st := tempStore(b)
			for b.Loop() {
				b.StopTimer()
				s, err := Begin(Options{Store: st, Tracker: k, Scoped: true, Confined: true})
				if err != nil {
					b.Fatal(err)
				}
				ready(b, func(c *fork.Command) {
					if err := s.Start(c); err != nil {
						b.Fatal(err)
					}
				})
				b.StartTimer()
				if r, err := s.Close(b.Context()); err != nil || !r.Done() {
					b.Fatal(r, err)
				}
			}
		})
	}
}
