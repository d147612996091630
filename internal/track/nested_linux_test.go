package track

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/internal/track/proc"
)

// TestNested: an inner session is reaped alone; reaping the outer one ends both.
func TestNested(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		inner := t.TempDir()
		start := func() (*Session, *bufio.Reader, string) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { r.Close() })
			c := helper(t, "nested", inner)
			c.Files = []*os.File{c.Files[0], w, c.Files[0]}
			s := begin(t, o, c)
			w.Close()
			b := bufio.NewReader(r)
			_ = r.SetReadDeadline(time.Now().Add(testkit.Patience))
			line, err := b.ReadString('\n')
			f := strings.Fields(line)
			if err != nil || len(f) < 2 || f[0] != "inner" {
				t.Fatalf("%q, %v", line, err)
			}
			if o.Tracker == Domain && f[2] != string(Domain) {
				t.Errorf("the inner tracker is %s", f[2])
			}
			eventually(t, "the inner processes run", func() bool { return len(marked(t, f[1])) == 6 })
			return s, b, f[1]
		}
		st, err := OpenStoreAt(inner)
		if err != nil {
			t.Fatal(err)
		}
		s, out, id := start()
		if r, err := st.Reap(deadline(t), "inner"); err != nil || !r.Done() {
			t.Fatalf("%+v, %v", r, err)
		}
		if line, err := out.ReadString('\n'); line != "inner ended\n" || len(marked(t, id)) > 0 {
			t.Fatalf("%q, %v", line, err)
		}
		if p, err := proc.Look(s.Pid()); err != nil || p.Dead() {
			t.Fatal("the outer session was killed with the inner one")
		}
		if r, err := s.Close(deadline(t)); err != nil || !r.Done() {
			t.Fatalf("%+v, %v", r, err)
		}
		s, out, id = start()
		if r, err := s.Close(deadline(t)); err != nil || !r.Done() {
			t.Fatalf("%+v, %v", r, err)
		}
		if _, err := out.ReadString('\n'); !errors.Is(err, io.EOF) || len(marked(t, id)) > 0 {
			t.Fatalf("the inner session outlived the outer one: %v", err)
		}
		if rs, err := st.Prune(deadline(t)); err != nil || len(rs) != 1 {
			t.Fatalf("%+v, %v", rs, err)
		}
	})
}
