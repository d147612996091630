package fork

import "syscall"

// EventKind tells events apart.
type EventKind uint32

// The events of a process.
const (
	Stopped   EventKind = iota + 1 // the command was stopped by Event.Signal
	Continued                      // the command goes on
	Exited                         // the command ended with Event.Status
	Emptied                        // nothing is left of the session; the last event
)

// Event is something that happened to a started command.
type Event struct {
	Kind   EventKind
	Status syscall.WaitStatus // Exited
	Signal syscall.Signal     // Stopped
	Killed int                // Emptied: processes that had to be killed
}
