package cmd

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/layer/apply"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/policy"
)

// stopper stops an apply by a signal, after the change in hand. The next signal ends this process.
type stopper struct {
	signals chan os.Signal
	got     atomic.Int32 // the signal, 0 for none
}

func newStopper() *stopper {
	s := &stopper{signals: make(chan os.Signal, 1)}
	for _, wanted := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
		if !signal.Ignored(wanted) {
			signal.Notify(s.signals, wanted)
		}
	}
	go func() {
		got, is := <-s.signals
		if is {
			s.got.Store(int32(got.(syscall.Signal)))
			signal.Stop(s.signals)
		}
	}()
	return s
}

func (s *stopper) stopped() bool { return s.got.Load() != 0 }

// end restores what signals do.
func (s *stopper) end() {
	signal.Stop(s.signals)
	close(s.signals)
}

// failed returns an error of an apply or an undo, with what to type. If a signal stopped it, the exit status says so.
func (s *stopper) failed(what string, l *layer.Layer, err error) error {
	id := l.Session[:shortest]
	hint := "zsbx try apply " + id
	if pending, _ := apply.Pending(l); pending {
		hint += "\n" + hint + " --undo"
	}
	if errors.Is(err, layer.ErrGone) {
		hint = "zsbx try show " + id + " --tar FILE"
	}
	text := fmt.Errorf("%s of layer %s: %w", what, l.Session, err)
	failed := &policy.Error{Code: supervise.CodeSession, Hint: hint, Err: text}
	if !errors.Is(err, apply.ErrStopped) {
		return failed
	}
	return errors.Join(exit(endedBy(syscall.Signal(s.got.Load()))), failed)
}
