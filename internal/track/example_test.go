//go:build linux

package track_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/track"
)

// An editor opens a terminal. When the user closes it, nothing should be left: no server that
// was started in the background, no watcher that became a daemon. The editor restricts nothing.
// If the editor itself is killed, the session's keeper ends the session.
func Example() {
	dir, err := os.MkdirTemp("", "editor-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := track.OpenStoreAt(dir) // the editor's own; track.OpenStore opens the user's
	if err != nil {
		log.Fatal(err)
	}
	s, err := track.Begin(track.Options{Store: store, Name: "terminal-1"})
	if err != nil {
		log.Fatal(err)
	}
	master, slave, err := pty.Open() // show what is read from master, write to it what is typed
	if err != nil {
		log.Fatal(err)
	}
	defer master.Close()
	err = s.Start(&fork.Command{
		Path:  "/bin/sh",
		Args:  []string{"sh", "-c", "sleep 1000 & setsid sleep 1000 & exit 3"},
		Env:   os.Environ(),
		Files: []*os.File{slave, slave, slave},
		Steps: []fork.Step{ // on macOS: Terminal: true
			{Name: "setsid(2)", Nr: unix.SYS_SETSID},
			{Name: "ioctl(TIOCSCTTY)", Nr: unix.SYS_IOCTL, Args: [6]uintptr{0, unix.TIOCSCTTY}},
		},
	})
	slave.Close()
	if err != nil {
		log.Fatal(err)
	}
	status, err := s.Wait()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the shell's exit status:", status.ExitStatus())

	// The user closes the terminal.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
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

// A server that was started from a terminal should keep running when the editor is closed. The
// editor's next start finds it in the store and ends it.
func ExampleStore_Reap() {
	dir, err := os.MkdirTemp("", "editor-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	startServer(dir)

	store, err := track.OpenStoreAt(dir) // some other day, in another process
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	sessions, err := store.List()
	if err != nil {
		log.Fatal(err)
	}
	for _, i := range sessions {
		report, err := store.Reap(ctx, i.ID)
		if err != nil {
			log.Fatal(err)
		}
		if report.Done() {
			fmt.Println(i.Record.Name, "and all that it started is gone")
		} else {
			fmt.Println(i.Record.Name, "may have left something:", report.Unproved, report.Survivors)
		}
	}
	// Output:
	// server and all that it started is gone
}

// startServer leaves a process behind.
func startServer(dir string) {
	store, err := track.OpenStoreAt(dir)
	if err != nil {
		log.Fatal(err)
	}
	s, err := track.Begin(track.Options{Store: store, Name: "server", Keep: true})
	if err != nil {
		log.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		log.Fatal(err)
	}
	defer null.Close()
	err = s.Start(&fork.Command{
		Path: "/bin/sh", Args: []string{"sh", "-c", "setsid sleep 1000 &"}, Env: os.Environ(),
		Files: []*os.File{null, null, null},
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.Wait(); err != nil {
		log.Fatal(err)
	}
	if _, err := s.Close(context.Background()); err != nil {
		log.Fatal(err)
	}
}
