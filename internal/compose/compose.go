package compose

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// Sources are what a policy is made from, besides what is on the machine.
type Sources struct {
	Asked *policy.Policy // the strongest of all; nil for nothing
	Files []string       // policy files, TOML or JSON, stronger than the user's and the project's
	More  *policy.Policy // counts like one more file; nil for nothing
	Args  []string       // the command, from which presets are detected

	// NoBaseline starts from nothing: no baseline, no presets except those that
	// Asked and Files name, no policy of the user or the project, no defaults.
	NoBaseline bool

	NoAutoPresets bool // detect no presets

	// Sign opens what git needs to sign commits: see resolve.Sign.
	Sign bool

	// SharedTmp allows the directories for everybody's temporary files, and
	// UserTemp, as they are.
	SharedTmp bool
	UserTemp  string // the user's own directory for temporary files, which macOS has; "" for none
}

// Composed is the policy of one run before it is resolved, and where it came
// from.
type Composed struct {
	Host   *host.Host
	Policy *policy.Policy
	Asked  *policy.Policy // Policy without what is built in; the presets are in it by name
	Files  []string       // the policy files in use, absolute, the weakest first
	Root   string         // the outermost repository around the working directory, "" for none
}

// Compose adds up the policy of a run on h. The error joins all that is wrong with
// policy files: *policy.Error, *policy.UntrustedError and those of package os. The rest is
// composed even so, in order to find more mistakes. The result is nil only if
// CheckVariables fails.
func Compose(h *host.Host, s *Sources) (*Composed, error) {
	if err := CheckVariables(h); err != nil {
		return nil, err
	}
	c := &Composed{Host: h}
	layers, err := c.files(h, s)
	if !s.NoBaseline {
		layers = append(layers, s.defaults())
	}
	if s.Asked != nil {
		layers = append(layers, s.Asked)
	}
	var unsigned error
	if s.Sign {
		var sign *policy.Policy
		sign, unsigned = resolve.Sign(h)
		if sign != nil {
			layers = append(layers, sign)
		}
	}
	asked := policy.Merge(layers...)
	builtIn, wrong := s.builtIn(h, asked)
	c.Policy = policy.Merge(append(builtIn, asked)...)
	c.Asked = asked
	return c, errors.Join(err, unsigned, wrong)
}

// builtIn returns the policies that are part of zsbx. They come first, so that all others
// override them.
func (s *Sources) builtIn(h *host.Host, asked *policy.Policy) ([]*policy.Policy, error) {
	var layers []*policy.Policy
	names := slices.Clone(asked.Presets)
	if !s.NoBaseline {
		layers = append(layers, policy.Baseline(h.OS))
		if !s.NoAutoPresets {
			names = append(names, resolve.Detect(*h, s.Args, writes(asked))...)
		}
	}
	for os, part := range map[string]*policy.Policy{"linux": asked.Linux, "macos": asked.MacOS} {
		if part == nil {
			continue
		}
		if os == h.OS {
			names = append(names, part.Presets...)
		}
		part.Presets = nil
	}
	var errs []error
	asked.Presets = nil
	for _, n := range names {
		if slices.ContainsFunc(asked.Presets, func(u policy.Named) bool { return u.Value == n.Value }) {
			continue
		}
		p, err := policy.Preset(n.Value)
		if err != nil {
			errs = append(errs, &policy.Error{
				Origin: n.Origin,
				Code:   policy.CodeValue,
				Msg:    err.Error(),
				Hint:   "zsbx profile --list",
			})
			continue
		}
		asked.Presets = append(asked.Presets, n)
		layers = append(layers, p)
	}
	return layers, errors.Join(errs...)
}

// files reads the policies in files: the user's, the project's, and those that
// were named.
func (c *Composed) files(h *host.Host, s *Sources) ([]*policy.Policy, error) {
	var layers []*policy.Policy
	var errs []error
	use := func(file string, p *policy.Policy, err error) {
		if err != nil {
			errs = append(errs, err)
		} else if p != nil {
			layers = append(layers, p)
			c.Files = append(c.Files, file)
		}
	}
	if !s.NoBaseline {
		file, base, err := UserPolicy(h)
		use(file, base, err)
		all, root, err := projects(h, base)
		c.Root = root
		errs = append(errs, err)
		for _, p := range all {
			if filepath.Dir(p.File) != h.Dir {
				p.policy.AnchorDenials(filepath.Dir(p.File))
			}
			use(p.File, p.policy, p.check())
		}
	}
	for _, f := range s.Files {
		file, err := host.Absolute(f)
		var p *policy.Policy
		if err == nil {
			p, err = policy.DecodeFile(f)
		}
		use(file, p, err)
	}
	if s.More != nil {
		layers = append(layers, s.More)
	}
	return layers, errors.Join(errs...)
}

// defaults are the rules that depend on what was asked for: without any file rule
// the working directory can be read and executed, and be written if that goes to a layer.
func (s *Sources) defaults() *policy.Policy {
	p := &policy.Policy{}
	if s.Asked == nil || len(s.Asked.FS.Rules) == 0 {
		access := policy.Read | policy.Exec
		if s.Asked != nil && s.Asked.FS.Writes.Value == "try" {
			access |= policy.Write
		}
		here := policy.Rule{Path: ".", Access: access, Origin: policy.Origin{Source: "default"}}
		p.FS.Rules = append(p.FS.Rules, here)
	}
	for _, dir := range []string{"/tmp", "/var/tmp", s.UserTemp} { // on macOS most programs use only the last
		if s.SharedTmp && dir != "" {
			p.FS.Rules = append(p.FS.Rules, policy.Rule{
				Path:     dir,
				Access:   policy.Read | policy.Write | policy.Exec,
				Optional: true,
				Origin:   policy.Origin{Source: "--shared-tmp"},
			})
		}
	}
	return p
}

// writes reports whether a policy makes anything writable.
func writes(p *policy.Policy) bool {
	return slices.ContainsFunc(p.FS.Rules, func(r policy.Rule) bool { return r.Access&policy.Write != 0 }) ||
		p.Linux != nil && writes(p.Linux) || p.MacOS != nil && writes(p.MacOS)
}
