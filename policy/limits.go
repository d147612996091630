package policy

import "time"

// Limits bound a run. A zero value means no limit.
type Limits struct {
	Timeout       time.Duration // the command is ended after that time; exit status 124
	TimeoutFrom   Origin
	MaxOutput     int64 // bytes of stdout and stderr together
	MaxOutputFrom Origin
}
