package track

// answers are what sandbox_check says about one process: 0 for allowed, 1 for
// denied, anything else for no answer. What was not asked is noAnswer.
type answers struct {
	sandboxed           int // 1: under some profile
	nameAllow, nameDeny int // looking up the session's two service names
	pathAllow, pathDeny int // reading the session's two marker files
}

const (
	allowed  = 0
	denied   = 1
	noAnswer = -1
)

// verdict is what the answers mean.
type verdict uint8

const (
	unclear verdict = iota // no answer, or one that makes no sense: never a match
	outside                // not of this session
	member                 // under the session's profile
)

// pair is what two questions say: allowed and denied is the session's
// fingerprint; every other profile, and none at all, answers both alike or the
// wrong way round.
func pair(allow, deny int) verdict {
	switch {
	case allow == allowed && deny == denied:
		return member
	case (allow == allowed || allow == denied) && (deny == allowed || deny == denied):
		return outside
	}
	return unclear
}

// verdict judges the answers. The names decide, for nothing on the disk
// changes them. Where they give no answer the paths do, but only as long as the
// markers are as they were made: a missing path counts as denied, so that a
// removed marker makes processes look alike.
//
// A process that has ended answers "denied" to everything, and so looks like
// one outside: whoever asks has to make sure afterwards that it still lives.
func (a answers) verdict(markers bool) verdict {
	names := pair(a.nameAllow, a.nameDeny)
	switch a.sandboxed {
	case allowed:
		if names == member {
			return unclear // under no profile, and yet denied something
		}
		return outside
	case denied:
	default:
		return unclear
	}
	if names != unclear {
		return names
	}
	if !markers {
		return unclear
	}
	return pair(a.pathAllow, a.pathDeny)
}
