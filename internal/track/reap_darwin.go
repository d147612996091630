package track

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/zsbx/zsbx/internal/track/proc"
	"github.com/zsbx/zsbx/internal/track/scan"
)

const howFingerprint = "two searches of the process table in a row found nothing with the session's fingerprint, " +
	"and nothing changed meanwhile"

// reap searches and kills. It needs no record, since the fingerprint depends only on the id.
func (f *found) reap(ctx context.Context, r *Report) error {
	h := &scan.Search{
		Table: &kernelTable{session: f.record.ID}, Self: os.Getpid(), Command: f.record.Command,
	}
	if f.recorded() {
		h.Supervisor = f.record.Supervisor
		h.Began = uint64(f.record.Started.UnixMicro())
	}
	if end, ok := ctx.Deadline(); ok {
		h.Limit = max(time.Until(end), time.Millisecond)
	}
	err := h.Run(ctx)
	r.Killed += h.Killed()
	r.addMethod("fingerprint")
	if err == nil {
		r.prove(howFingerprint)
		return nil
	}
	if !errors.Is(err, scan.ErrUnproved) || len(h.Left) == 0 {
		return err
	}
	r.Unproved = err.Error()
	r.Survivors = h.Left
	proc.Fill(r.Survivors)
	return nil
}

// WithTimeout is context.WithTimeout, which is different on Linux.
func WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

func (f *found) cleanup() error { return nil }

// There are no keepers on macOS, so findKeeper and orphans find nothing.
func (v *view) findKeeper(*found) {}

func (v *view) orphans([]Info) []Info { return nil }

func (v *view) procs(f *found) (out []Proc) {
	t := &kernelTable{session: f.record.ID}
	for _, p := range v.Procs {
		if !p.Dead() && t.Probe(p.Pid).Match() == scan.Member {
			out = append(out, p)
		}
	}
	return out
}
