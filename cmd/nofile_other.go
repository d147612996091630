//go:build !linux

package cmd

import "github.com/zsbx/zsbx/enforce/fork"

// fileLimitSteps are not needed where package syscall executes the command.
func fileLimitSteps(*fork.Command) []fork.Step { return nil }

func closeInherited() {}

func enoughFiles() error { return nil }
