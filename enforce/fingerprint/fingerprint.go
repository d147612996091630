package fingerprint

import "github.com/google/uuid"

// Valid reports whether session is a UUID in lower case, so that nothing made
// from it needs quoting.
func Valid(session string) bool {
	id, err := uuid.Parse(session)
	return err == nil && id.String() == session
}

// Name is the prefix of the two service names; ".allow" and ".deny" are added.
// Nobody registers them.
func Name(session string) string { return "dev.zsbx." + session }
