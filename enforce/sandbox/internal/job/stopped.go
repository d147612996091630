package job

import "time"

// staysStopped tells a process that its user has stopped from one that is about
// to be killed: on macOS, reap stops every process for a moment, so that it can't
// change while it is looked at. Had zsbx stopped itself then, nobody would wake
// it.
func staysStopped(stopped func() bool, sleep func(time.Duration)) bool {
	const looks, pause = 6, 5 * time.Millisecond
	for i := range looks {
		if i > 0 {
			sleep(pause)
		}
		if !stopped() {
			return false
		}
	}
	return true
}
