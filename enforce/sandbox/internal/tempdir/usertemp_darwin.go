package tempdir

import "github.com/zsbx/zsbx/enforce/libsystem"

// User is the user's own directory for temporary files, "" for none.
func User() string { return libsystem.UserTemp() }
