package apply

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/zsbx/zsbx/internal/layer"
)

// TestDamagedJournal: a journal that can't be one of its layer can't be read.
func TestDamagedJournal(t *testing.T) {
	t.Parallel()
	for text, whole := range map[string]bool{
		`{"Version":1}`: true,
		`{"Version":1,"Rounds":[{"N":1,"State":"done","Units":[{"Tree":0}],"Stages":[{"Tree":0}],"Dirs":[{"Tree":0}]}]}`: true,
		`{"Version":2}`:                                     false,
		`{"Version":1,"Rounds":[null]}`:                     false,
		`{"Version":1,"Rounds":[{"Units":[null]}]}`:         false,
		`{"Version":1,"Rounds":[{"Units":[{"Tree":1}]}]}`:   false,
		`{"Version":1,"Rounds":[{"Stages":[{"Tree":-1}]}]}`: false,
		`{"Version":1,"Rounds":[{"Dirs":[null]}]}`:          false,
		`{"Version":1,"Rounds":[{"N":`:                      false,
	} {
		l := &layer.Layer{Dir: t.TempDir()}
		l.Trees = []layer.Tree{{Path: "/t"}}
		if err := os.WriteFile(filepath.Join(l.Dir, journalFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := load(l)
		if whole != (err == nil) || !whole && !errors.Is(err, errUnread) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
