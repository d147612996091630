package scan

// Answers are what sandbox_check says about one process: 0 for allowed, 1 for
// denied, anything else for no answer. What was not asked is NoAnswer.
type Answers struct {
	Sandboxed   int // 1: under some profile
	Allow, Deny int // looking up the session's two service names
}

const (
	Allowed  = 0
	Denied   = 1
	NoAnswer = -1
)

// Match is what the answers mean.
type Match uint8

const (
	Unclear Match = iota // no answer, or one that makes no sense: never a match
	Outside              // not of this session
	Member               // under the session's profile
	Gone                 // ended meanwhile, so that its answers say nothing
)

// Match weighs the answers. One name allowed and the other denied is the session's
// fingerprint; every other profile answers both alike or the wrong way round.
//
// A process that has ended answers "denied" to everything, and so looks like
// one outside: whoever asks has to make sure afterwards that it still lives.
func (a Answers) Match() Match {
	member := a.Allow == Allowed && a.Deny == Denied
	answered := (a.Allow == Allowed || a.Allow == Denied) && (a.Deny == Allowed || a.Deny == Denied)
	switch {
	case a.Sandboxed == Allowed && !member: // under no profile, and yet denied something, is no sense
		return Outside
	case a.Sandboxed != Denied || !answered:
		return Unclear
	case member:
		return Member
	}
	return Outside
}
