package landlock

import (
	"fmt"

	"github.com/zsbx/zsbx/policy"
)

// PathError says that a path of the policy could not be turned into a rule. Where it
// changed, starting again looks anew.
type PathError struct {
	Path    string
	Origin  policy.Origin
	Changed bool  // it is no longer what it was when the policy was resolved
	Err     error // may be nil with Changed
}

func (e *PathError) Error() string {
	what := "opening %s (%s)"
	if e.Changed {
		what = "%s (%s) changed while the command was being started"
	}
	what = fmt.Sprintf(what, e.Path, e.Origin)
	if e.Err != nil {
		what += ": " + e.Err.Error()
	}
	return what
}

// Unwrap gives the system's error, if there is one.
func (e *PathError) Unwrap() error { return e.Err }
