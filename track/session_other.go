//go:build !linux && !darwin

package track

import (
	"context"
	"errors"

	"github.com/zsbx/zsbx/enforce/fork"
)

type held struct{}

func (s *Session) choose() error                         { return errors.ErrUnsupported }
func (s *Session) downgrade(failure error) error         { return failure }
func (s *Session) launch(fork.Command) error             { return errors.ErrUnsupported }
func (s *Session) replace(fork.Command) error            { return errors.ErrUnsupported }
func (s *Session) awaitKeeper(context.Context) bool      { return true }
func (s *Session) kill() error                           { return errors.ErrUnsupported }
func (s *Session) settle(context.Context, *Report) error { return errors.ErrUnsupported }
func (s *Session) removeHeld() error                     { return nil }
func (s *Session) closeHeld()                            {}
func (s *Session) dismiss()                              {}
func (f *found) reap(context.Context, *Report) error     { return errors.ErrUnsupported }
func (f *found) cleanup() error                          { return errors.ErrUnsupported }
func look([]Info, []*found) error                        { return errors.ErrUnsupported }
func machine() (host, boot string, ns uint64, err error) { return "", "", 0, errors.ErrUnsupported }
func identify(int) (ProcID, error)                       { return ProcID{}, errors.ErrUnsupported }
func probe() Caps                                        { return Caps{} }
