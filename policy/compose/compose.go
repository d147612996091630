// Package compose adds up the policy of one run as zsbx run does: the baseline, the presets that
// were asked for or that fit the command, the user's own policy, the project's, policy files, and
// what the caller asks for, each stronger than the one before.
//
// A project's policy is a stranger's file. It counts when the user has trusted exactly this content
// at exactly this place, by zsbx check --trust, or when it only takes away.
package compose

import (
	"github.com/zsbx/zsbx/internal/compose"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/policy"
)

// Sources are what a policy is made from, besides what is on the machine.
type Sources struct {
	Dir   string         // the command's working directory; "" is the process's own
	Env   []string       // the caller's environment; nil is the process's own
	Asked *policy.Policy // the strongest of all; nil for nothing
	Files []string       // policy files, TOML or JSON, stronger than the user's and the project's
	Args  []string       // the command, from which presets are detected

	// NoBaseline starts from nothing: no baseline, no presets except those that
	// Asked and Files name, no policy of the user or the project, no defaults.
	NoBaseline bool

	NoAutoPresets bool // detect no presets

	// Sign opens what git needs to sign commits: the agent's socket and public keys.
	Sign bool

	// SharedTmp allows the directories for everybody's temporary files, and UserTemp, as they are.
	SharedTmp bool
	UserTemp  string // the user's own directory for temporary files, which macOS has; "" for none
}

// Composed is the policy of one run before it is resolved, and where it came from.
type Composed struct {
	Policy *policy.Policy
	Files  []string // the policy files in use, absolute, the weakest first
}

// Compose adds up the policy of a run. The error joins all that is wrong with policy files:
// *policy.Error, *policy.UntrustedError and those of package os. The rest is composed even so, in
// order to find more mistakes. The result is nil only if the working directory or a variable with
// the place of zsbx's files is unusable.
func Compose(s *Sources) (*Composed, error) {
	h, err := host.HostIn(s.Dir)
	if err != nil {
		return nil, err
	}
	if s.Env != nil {
		h.Env = s.Env
	}
	c, err := compose.Compose(&h, &compose.Sources{
		Asked:         s.Asked,
		Files:         s.Files,
		Args:          s.Args,
		NoBaseline:    s.NoBaseline,
		NoAutoPresets: s.NoAutoPresets,
		Sign:          s.Sign,
		SharedTmp:     s.SharedTmp,
		UserTemp:      s.UserTemp,
	})
	if c == nil {
		return nil, err
	}
	return &Composed{Policy: c.Policy, Files: c.Files}, err
}
