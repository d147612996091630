//go:build !linux

package sandbox

import "github.com/zsbx/zsbx/enforce/fork"

// fileLimitSteps are not needed where package syscall executes the command.
func fileLimitSteps(*fork.Command) []fork.Step { return nil }
