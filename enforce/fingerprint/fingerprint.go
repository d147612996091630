package fingerprint

import "github.com/google/uuid"

// Valid reports whether session is a UUID in lower case, so that nothing made
// from it needs quoting.
func Valid(session string) bool {
	id, err := uuid.Parse(session)
	return err == nil && id.String() == session
}

// Dir is the directory of a session's two marker files, in the spelling that
// the kernel compares.
func Dir(session string) string { return "/private/tmp/.zsbx-" + session }

// Allow and Deny are the marker files.
func Allow(session string) string { return Dir(session) + "/allow" }

// Deny is the marker file that the session's processes may not read.
func Deny(session string) string { return Dir(session) + "/deny" }

// Name is the prefix of the two service names; ".allow" and ".deny" are added.
// Nobody registers them.
func Name(session string) string { return "dev.zsbx." + session }
