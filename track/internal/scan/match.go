package scan

// Answers are what sandbox_check says about one process: 0 for allowed, 1 for
// denied, anything else for no answer. What was not asked is NoAnswer.
type Answers struct {
	Sandboxed           int // 1: under some profile
	NameAllow, NameDeny int // looking up the session's two service names
	PathAllow, PathDeny int // reading the session's two marker files
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

// Pair is what two questions say: allowed and denied is the session's
// fingerprint; every other profile, and none at all, answers both alike or the
// wrong way round.
func Pair(allow, deny int) Match {
	switch {
	case allow == Allowed && deny == Denied:
		return Member
	case (allow == Allowed || allow == Denied) && (deny == Allowed || deny == Denied):
		return Outside
	}
	return Unclear
}

// Match weighs the answers. The names decide, for nothing on the disk
// changes them. Where they give no answer the paths do, but only as long as the
// markers are as they were made: a missing path counts as denied, so that a
// removed marker makes processes look alike.
//
// A process that has ended answers "denied" to everything, and so looks like
// one outside: whoever asks has to make sure afterwards that it still lives.
func (a Answers) Match(markers bool) Match {
	names := Pair(a.NameAllow, a.NameDeny)
	switch a.Sandboxed {
	case Allowed:
		if names == Member {
			return Unclear // under no profile, and yet denied something
		}
		return Outside
	case Denied:
	default:
		return Unclear
	}
	if names != Unclear {
		return names
	}
	if !markers {
		return Unclear
	}
	return Pair(a.PathAllow, a.PathDeny)
}
