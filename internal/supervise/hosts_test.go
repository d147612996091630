package supervise

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zsbx/zsbx/internal/egress"
	"github.com/zsbx/zsbx/internal/egress/rule"
)

// TestHostSums: all hosts that were refused are counted at the end, and nothing is missing if there is a log.
func TestHostSums(t *testing.T) {
	for _, tt := range []struct {
		name string
		log  bool
		want []string
	}{
		{"log", true, []string{"220 other hosts or ports were refused, or failed"}},
		{"no log", false, []string{
			"220 other hosts or ports were refused, or failed; --hosts-log FILE lists them",
			"30 events about connections are not in any report",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log *os.File
			if tt.log {
				var err error
				log, err = os.Create(filepath.Join(t.TempDir(), "log"))
				if err != nil {
					t.Fatal(err)
				}
				defer log.Close()
			}
			var got []string
			n := newHostNotes(func(w Warning) {
				if w.Text != "" {
					got = append(got, w.Text)
				}
			}, log)
			for i := range 260 {
				v := rule.Verdict{Host: fmt.Sprintf("h%d.example", i%230), Port: 443, Reason: "refused"}
				n.event(egress.Event{Kind: egress.Refused, Verdict: v})
			}
			n.end()
			if !slices.Equal(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
