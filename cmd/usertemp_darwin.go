package cmd

import "github.com/zsbx/zsbx/enforce/libsystem"

// userTemp is the user's own directory for temporary files, "" for none.
func userTemp() string { return libsystem.UserTemp() }
