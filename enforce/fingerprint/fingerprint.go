package fingerprint

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// ID makes the id of a session of random bytes: a UUID of version 4 (RFC 9562), in
// lower case.
func ID(random [16]byte) string {
	random[6], random[8] = random[6]&0x0f|0x40, random[8]&0x3f|0x80
	return spell(random[:])
}

func spell(b []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Valid reports whether session is a UUID in lower case, so that nothing made
// from it needs quoting.
func Valid(session string) bool {
	b, err := hex.DecodeString(strings.ReplaceAll(session, "-", ""))
	return err == nil && len(b) == 16 && spell(b) == session
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
