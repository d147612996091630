// Command queue runs the shell commands in its arguments, one after the other. It confines
// nothing: it only keeps track of them. If it crashes, its next run ends what was left. A user may
// run only one queue at a time: the next one would end what the first one runs.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/track"
)

// prefix begins the names of this program's sessions.
const prefix = "queue-"

func main() {
	sandbox.Init()
	if err := endEarlier(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	for i, job := range os.Args[1:] {
		result, err := sandbox.Run(context.Background(), nil, sandbox.Options{
			Args:      []string{"sh", "-c", job},
			Stdout:    os.Stdout,
			Stderr:    os.Stderr,
			Name:      fmt.Sprint(prefix, i+1),
			TrackOnly: true,
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			continue // if it was not started, it has no status
		}
		fmt.Printf("%s%d: status %d\n", prefix, i+1, result.ExitCode())
	}
}

// endEarlier ends the sessions of a queue that crashed. Usually they end by themselves when that
// happens; here it is waited for, and made sure of.
func endEarlier() error {
	store, err := track.OpenStore()
	if err != nil {
		return err
	}
	sessions, err := store.List()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, s := range sessions {
		if !strings.HasPrefix(s.Name, prefix) {
			continue
		}
		report, err := store.Reap(ctx, s.ID)
		if errors.Is(err, track.ErrNotFound) {
			continue // it has just ended
		}
		if err != nil {
			return err
		}
		fmt.Printf("%s: left by a crash, now gone: %v\n", s.Name, report.Done())
	}
	return nil
}
