package supervise

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/zsbx/zsbx/internal/track"
)

// A note that can't be read does not say that a program was killed.
func TestUntoldUnread(t *testing.T) {
	const id = "11111111-2222-4333-8444-555555555555"
	state := t.TempDir()
	dir := filepath.Join(state, "sessions")
	note := filepath.Join(dir, id+".0123456789abcdef.untold")
	// The session's file is a directory, so nothing is known of the session.
	if err := os.MkdirAll(filepath.Join(dir, id+".session"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(note, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	st, err := track.OpenStoreAt(state)
	if err != nil {
		t.Fatal(err)
	}
	var all []*Untold
	UntoldOf(st, id, func(u *Untold) { all = append(all, u) })
	if len(all) != 1 || !all[0].Unread || all[0].Err == nil {
		t.Fatalf("%+v", all)
	}
	if err := all[0].Told(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(note); err != nil {
		t.Error(err)
	}
}

// TestToldError: a note that can't be removed is reported again, so Told says why.
func TestToldError(t *testing.T) {
	const id = "11111111-2222-4333-8444-555555555555"
	for _, removable := range []bool{true, false} {
		state := t.TempDir()
		dir := filepath.Join(state, "sessions")
		note := filepath.Join(dir, id+".0123456789abcdef.untold")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(note, []byte(`{"format":2}`), 0o600); err != nil {
			t.Fatal(err)
		}
		st, err := track.OpenStoreAt(state)
		if err != nil {
			t.Fatal(err)
		}
		told := false
		UntoldOf(st, id, func(u *Untold) {
			told = true
			if u.Unread || u.Err != nil {
				t.Fatalf("%+v", u)
			}
			if !removable { // rmdir(2) and unlink(2) refuse a directory with an entry, for root too
				if err := os.Remove(note); err != nil {
					t.Fatal(err)
				}
				if err := os.MkdirAll(filepath.Join(note, "entry"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := u.Told(); (err == nil) != removable {
				t.Errorf("removable %v: %v", removable, err)
			}
		})
		if !told {
			t.Error("nothing was told")
		}
	}
}
