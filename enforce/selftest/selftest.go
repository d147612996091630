package selftest

import "github.com/zsbx/zsbx/enforce"

// Proof is what SelfTest found out about one promise.
type Proof struct {
	Name    string `json:"name"`    // the gap that stands for its lack, or "no-new-privs", "capabilities"
	Promise string `json:"promise"` // "no signals to processes outside"
	Held    bool   `json:"held"`    // a confined process was refused, where an unconfined one was not
	Means   string `json:"means"`   // "Landlock", "seccomp"
	Detail  string `json:"detail"`  // what was tried and what was answered
}

// Run proves what this machine holds by attacking it: for each promise a
// throw-away process puts on the restrictions of a plan for caps and tries
// what they forbid, and another one tries the same without them. A promise is
// held only if the first was refused and the second was not. On macOS, what
// can't be tried without harm is asked of the kernel instead (sandbox_check).
//
// The attacks are harmless: they are made on files, sockets and ports of a
// temporary directory's and on the calling process, whose limits are set to
// what they are. SelfTest takes some tens of milliseconds, on macOS more. The
// error says that the tests could not be made; on other systems it is
// errors.ErrUnsupported.
func Run(caps enforce.Caps) ([]Proof, error) { return selfTest(caps) }
