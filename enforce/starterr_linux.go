package enforce

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/internal/landlock"
	"github.com/zsbx/zsbx/enforce/internal/mounts"
	"github.com/zsbx/zsbx/enforce/internal/seccomp"
	"github.com/zsbx/zsbx/policy"
)

func explainStart(err error) error {
	var se *fork.StepError
	if !errors.As(err, &se) || se.Stage == fork.StageExec {
		return err
	}
	switch {
	case se.Tag == mounts.TagCheck && se.Errno == syscall.ESTALE:
		return &landlock.PathError{Path: se.Name, Origin: policy.Origin{Source: "denied or protected"}, Changed: true}
	case se.Tag == landlock.Tag && se.Errno == syscall.E2BIG:
		return fmt.Errorf("16 Landlock domains are nested here already, more are not possible: %w", err)
	case se.Tag == landlock.Tag && se.Errno == syscall.EPERM,
		se.Tag == seccomp.Tag && (se.Errno == syscall.EPERM || se.Errno == syscall.EACCES):
		return fmt.Errorf("another sandbox around this one refuses it: %w", err)
	case se.Tag == seccomp.Tag && se.Errno == syscall.ENOMEM:
		return fmt.Errorf("too many seccomp filters are nested here already, or memory is short: %w", err)
	}
	return err
}
