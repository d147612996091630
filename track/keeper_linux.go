package track

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// openKeeper opens the keeper's process. errGone says that it is no more.
//
// A session that is just starting has no recorded keeper yet: then this waits
// for it. One whose supervisor died in that very moment never will have, and
// where the file can't be read it never was: then the keeper is found by what
// runs below it.
func (f *found) openKeeper(ctx context.Context) (*handle, error) {
	for try := 0; f.holder.Keeper.IsZero() && f.holder.Command.Start == 0; try++ {
		h, err := f.dir.readHolder()
		if err == nil {
			f.holder = h
			break
		}
		f.word = readState(f.state)
		if !errors.Is(err, fs.ErrNotExist) || !f.word.locked || try == 100 || ctx.Err() != nil {
			if err := f.searchKeeper(); err != nil {
				return nil, err
			}
			break
		}
		sleep(ctx, 10*time.Millisecond)
	}
	if f.holder.Keeper.IsZero() {
		return nil, errGone
	}
	h, err := openProc(f.holder.Keeper)
	if err != nil {
		return nil, err
	}
	if err := h.checkKeeper(ctx); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// checkKeeper makes sure that what the record calls a keeper is one, and is
// the user's.
func (h *handle) checkKeeper(ctx context.Context) error {
	st, err := readStatus(h.id.Pid)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return errGone
	}
	if err != nil {
		return err
	}
	if st.uid != os.Geteuid() && os.Geteuid() != 0 {
		return fmt.Errorf("keeper %d: %w: it runs as uid %d, you are uid %d", h.id.Pid, ErrForeign, st.uid, os.Geteuid())
	}
	for range 100 { // a keeper that was just forked has no name yet
		p, err := readProc(h.id.Pid)
		switch {
		case err != nil || p.Start != h.id.Start || p.dead():
			return errGone
		case p.Name == keeperName:
			return nil
		}
		sleep(ctx, 10*time.Millisecond)
	}
	return fmt.Errorf("process %d is recorded as the session's keeper but is not one: not touched", h.id.Pid)
}

// searchKeeper looks for a keeper that no file names; errGone if there is none.
func (f *found) searchKeeper() error {
	t, err := readTable()
	if err != nil {
		return err
	}
	k, ok := f.keeperIn(t, readMembers(t))
	if !ok {
		return errGone
	}
	f.holder.Keeper = k.ProcID
	return nil
}
