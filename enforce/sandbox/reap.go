package sandbox

import (
	"context"

	"github.com/zsbx/zsbx/enforce/sandbox/internal/tempdir"
	"github.com/zsbx/zsbx/track"
)

// Reap ends a session of the store with all that is left of it, as Store.Reap does,
// and removes its private temporary directory.
func Reap(ctx context.Context, st *track.Store, id string) (track.Report, error) {
	r, err := st.Reap(ctx, id)
	if err == nil && r.Removed { // nobody will know of it any more
		err = tempdir.RemoveOf(r.Temp)
	}
	return r, err
}

// SweepTemp removes the empty private temporary directories that killed runs left in
// /tmp and in tmpdir, and that no session and no process uses.
func SweepTemp(st *track.Store, tmpdir string) error { return tempdir.Sweep(st, tmpdir) }

// UserTemp is the user's own directory for temporary files, which macOS has; ""
// elsewhere.
func UserTemp() string { return tempdir.User() }
