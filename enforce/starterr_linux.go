package enforce

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/internal/landlock"
	"github.com/zsbx/zsbx/enforce/internal/mounts"
	"github.com/zsbx/zsbx/policy"
)

func explainStart(err error) error {
	var se *fork.StepError
	if !errors.As(err, &se) || se.Stage == "exec" {
		return err
	}
	switch {
	case strings.HasPrefix(se.Name, mounts.StepChecking) && se.Errno == syscall.ESTALE:
		return &landlock.PathError{Path: strings.TrimPrefix(se.Name, mounts.StepChecking), Origin: policy.Origin{Source: "denied or protected"}, Changed: true}
	case strings.HasPrefix(se.Name, "landlock_restrict_self") && se.Errno == syscall.E2BIG:
		return fmt.Errorf("16 Landlock domains are nested here already, more are not possible: %w", err)
	case strings.HasPrefix(se.Name, "landlock_restrict_self") && se.Errno == syscall.EPERM,
		strings.HasPrefix(se.Name, "seccomp") && (se.Errno == syscall.EPERM || se.Errno == syscall.EACCES):
		return fmt.Errorf("another sandbox around this one refuses it: %w", err)
	case strings.HasPrefix(se.Name, "seccomp") && se.Errno == syscall.ENOMEM:
		return fmt.Errorf("too many seccomp filters are nested here already, or memory is short: %w", err)
	}
	return err
}
