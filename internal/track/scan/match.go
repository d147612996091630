package scan

// Answers has what sandbox_check answers about one process: Allowed, Denied, or anything else
// for no answer. What was not asked is NoAnswer.
type Answers struct {
	Sandboxed   int // Denied if it is under some profile
	Allow, Deny int // lookups of the session's two service names
}

const (
	Allowed  = 0
	Denied   = 1
	NoAnswer = -1
)

// Match is the meaning of answers.
type Match uint8

const (
	Unclear Match = iota // no answers, or contradictory ones: never a match
	Outside              // not of this session
	Member               // under the session's profile
	Gone                 // ended meanwhile, so its answers mean nothing
)

// Match interprets the answers. One name allowed and the other denied is the session's
// fingerprint. Every other profile gives the same answer for both, or the opposite pair.
//
// For a process that has ended every answer is Denied, so it looks like one outside. The caller
// must check afterwards that the process still lives.
func (a Answers) Match() Match {
	member := a.Allow == Allowed && a.Deny == Denied
	answered := (a.Allow == Allowed || a.Allow == Denied) && (a.Deny == Allowed || a.Deny == Denied)
	switch {
	case a.Sandboxed == Allowed && !member: // a member's answers without a profile make no sense
		return Outside
	case a.Sandboxed != Denied || !answered:
		return Unclear
	case member:
		return Member
	}
	return Outside
}
