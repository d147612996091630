package track

import (
	"context"
	"errors"
	"fmt"
)

// Prune reaps all stale sessions, like zsbx reap --stale. A failure for one session does not
// stop the others.
func (s *Store) Prune(ctx context.Context) ([]Report, error) {
	infos, err := s.List()
	errs := []error{err}
	var rs []Report
	for _, i := range infos {
		if !i.Life.Stale() {
			continue
		}
		r, err := s.Reap(ctx, i.ID)
		switch {
		case errors.Is(err, ErrNotFound): // somebody else was faster
		case err != nil:
			errs = append(errs, fmt.Errorf("session %s: %w", i.ID, err))
		default:
			rs = append(rs, r)
		}
	}
	return rs, errors.Join(errs...)
}
