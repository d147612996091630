package fingerprint

import "github.com/google/uuid"

// Valid reports whether session is a UUID in lower case, so that nothing made
// from it needs quoting.
func Valid(session string) bool {
	id, err := uuid.Parse(session)
	return err == nil && id.String() == session
}

// Name returns the prefix of the two service names, which end in ".allow" and ".deny". Nobody
// registers them.
func Name(session string) string { return "dev.zsbx." + session }
