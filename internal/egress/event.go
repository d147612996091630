package egress

import "github.com/zsbx/zsbx/internal/egress/rule"

// Kind is what has happened. The list is closed.
type Kind string

const (
	Refused Kind = "refused" // something was not allowed, or could not be reached
	Opened  Kind = "opened"  // a connection was made
	Closed  Kind = "closed"  // it has ended
	Cut     Kind = "cut"     // it was reset before all bytes were passed on
)

// Event is one thing that has happened, for a log and for messages. It has no secret in it.
type Event struct {
	Kind     Kind
	Verdict  rule.Verdict // what it is about, and by which rule or why not
	Who      string       // as the caller has named the program; "" if it has not
	Lookup   bool         // a name was looked up, and nothing was connected to
	Broken   bool         // of Closed: it was refused after it was made
	Sent     int64        // bytes from the client
	Received int64        // bytes to the client
}

// Sink takes events. It must not wait.
type Sink func(Event)
