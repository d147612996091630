//go:build !darwin

package enforce

import "github.com/zsbx/zsbx/enforce/fork"

func trackOnly(*fork.Command, string) error { return nil }
