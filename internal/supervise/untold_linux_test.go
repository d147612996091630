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
