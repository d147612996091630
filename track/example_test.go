//go:build linux

package track_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/track"
)

// An editor opens a terminal, and wants nothing to be left of it when the user
// closes it: no server that was started in the background, no watcher that made
// itself a daemon. It restricts nothing.
func Example() {
	dir, err := os.MkdirTemp("", "editor-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := track.OpenStoreAt(dir) // an editor's own; track.OpenStore for the user's
	if err != nil {
		log.Fatal(err)
	}
	s, err := track.Begin(track.Options{Store: store, Name: "terminal-1"})
	if err != nil {
		log.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		log.Fatal(err)
	}
	defer null.Close()
	err = s.Start(&fork.Command{
		Path:  "/bin/sh",
		Args:  []string{"sh", "-c", "sleep 1000 & setsid sleep 1000 & exit 3"},
		Env:   os.Environ(),
		Files: []*os.File{null, null, null},
	})
	if err != nil {
		log.Fatal(err)
	}
	status, err := s.Wait()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the shell's exit status:", status.ExitStatus())

	// The user closes the terminal.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	report, err := s.Close(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("nothing is left:", report.Done())
	// Output:
	// the shell's exit status: 3
	// nothing is left: true
}

// After a crash of the editor its next start looks for terminals that are
// still there. (The keeper has killed them when the editor died, unless they
// were to be kept.)
func ExampleStore_Reap() {
	store, err := track.OpenStore()
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	sessions, err := store.List()
	if err != nil {
		log.Fatal(err)
	}
	for _, i := range sessions {
		if i.Record.Policy != "editor" {
			continue // somebody else's
		}
		report, err := store.Reap(ctx, i.ID)
		if err != nil {
			log.Fatal(err)
		}
		if !report.Done() {
			fmt.Println(i.ID, "may have left something:", report.Unproved, report.Survivors)
		}
	}
	// Output:
}
