package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/zsbx/zsbx/policy"
)

// userPolicyFile and projectPolicyFile are where policies are looked for.
const (
	userPolicyFile    = "zsbx/policy.toml" // below $XDG_CONFIG_HOME
	projectPolicyFile = ".zsbx.toml"
)

// composed is the policy of one run before it is resolved, and where it came
// from.
type composed struct {
	policy *policy.Policy
	host   policy.Host
	files  []string // policy files in use, absolute
}

// compose adds up, from the weakest to the strongest, the baseline and the
// presets, the user's policy, the project's, the --policy files and the flags.
// argv is the command, as far as presets are detected from it. The error joins all that is
// wrong with flags and files.
func (o *policyFlags) compose(a *app, argv []string) (*composed, error) {
	flags, flagErr := o.policy()
	host, err := o.thisHost(a)
	if err != nil {
		return nil, errors.Join(flagErr, err)
	}
	c := &composed{host: host}
	layers, fileErr := o.fileLayers(a, c)
	if err := errors.Join(flagErr, fileErr); err != nil {
		return nil, err
	}
	if !o.noBaseline {
		layers = append(layers, o.defaults())
	}
	asked := policy.Merge(append(layers, flags)...)
	builtIn, err := o.builtIn(c.host, argv, asked)
	if err != nil {
		return nil, err
	}
	c.policy = policy.Merge(append(builtIn, asked)...)
	return c, nil
}

// builtIn gives the policies that are part of zsbx: the baseline, and the
// presets that were asked for or that fit the command. They come first, so
// that whatever anybody wrote overrides them.
func (o *policyFlags) builtIn(h policy.Host, argv []string, asked *policy.Policy) ([]*policy.Policy, error) {
	var layers []*policy.Policy
	names := slices.Clone(asked.Presets)
	if !o.noBaseline {
		layers = append(layers, policy.Baseline(h.OS))
		if !o.noAutoPresets {
			names = append(names, policy.Detect(h, argv)...)
		}
	}
	own := asked.Linux
	if h.OS == "macos" {
		own = asked.MacOS
	}
	if own != nil {
		names = append(names, own.Presets...)
	}
	var errs []error
	used := &policy.Policy{}
	for _, n := range names {
		if slices.ContainsFunc(used.Presets, func(u policy.Named) bool { return u.Value == n.Value }) {
			continue
		}
		p, err := policy.Preset(n.Value)
		if err != nil {
			errs = append(errs, &failure{
				code: codePolicy, status: exitFailed, hint: "zsbx profile --list",
				err: fmt.Errorf("%s: %w", n.Origin, err),
			})
			continue
		}
		used.Presets = append(used.Presets, n)
		layers = append(layers, p)
	}
	asked.Presets = used.Presets
	for _, os := range []*policy.Policy{asked.Linux, asked.MacOS} {
		if os != nil {
			os.Presets = nil
		}
	}
	return layers, errors.Join(errs...)
}

// resolve finds out what the policy means on this machine.
func (c *composed) resolve() (*policy.Resolved, error) {
	r, err := c.policy.Resolve(c.host)
	return r, coded(codePolicy, err)
}

// warnOf says what was asked for without effect.
func (a *app) warnOf(r *policy.Resolved) {
	for _, w := range r.Warnings {
		a.say.warn("%v", w)
		if w.Hint != "" {
			a.say.hint("%s", w.Hint)
		}
	}
}

// fileLayers reads the policies in files: the user's, the project's, and those
// of --policy.
func (o *policyFlags) fileLayers(a *app, c *composed) ([]*policy.Policy, error) {
	var layers []*policy.Policy
	var errs []error
	use := func(file string, p *policy.Policy, err error) {
		if err != nil {
			errs = append(errs, coded(codePolicy, err))
		} else if p != nil {
			layers = append(layers, p)
			c.files = append(c.files, file)
		}
	}
	if !o.noBaseline {
		file := filepath.Join(a.configHome(), userPolicyFile)
		p, err := policy.DecodeFile(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoHome) {
			p, err = nil, nil
		}
		use(file, p, err)
		base := p
		if file, err := findProjectPolicy(c.host.Dir); file != "" || err != nil {
			var p *policy.Policy
			if err == nil {
				p, err = a.projectPolicy(file, base)
			}
			use(file, p, err)
		}
	}
	for _, f := range o.files {
		file, err := filepath.Abs(f)
		var p *policy.Policy
		if err == nil {
			p, err = policy.DecodeFile(f)
		}
		use(file, p, err)
	}
	return layers, errors.Join(errs...)
}

// defaults are the rules that depend on what the user asked for: without any
// file rule the working directory can be read and executed.
func (o *policyFlags) defaults() *policy.Policy {
	p := &policy.Policy{}
	if !o.asksForFiles() {
		p.FS.Rules = append(p.FS.Rules, policy.Rule{
			Path: ".", Access: policy.Read | policy.Exec, Origin: policy.Origin{Source: "default"},
		})
	}
	if o.sharedTmp {
		for _, dir := range []string{"/tmp", "/var/tmp"} {
			p.FS.Rules = append(p.FS.Rules, policy.Rule{
				Path: dir, Access: policy.Read | policy.Write | policy.Exec, Optional: true, Origin: flagOrigin("--shared-tmp"),
			})
		}
	}
	return p
}

// findProjectPolicy finds the project's policy: the nearest .zsbx.toml in dir
// or above it, up to the root of the repository that dir lies in. Outside of a
// repository only dir itself counts: nobody's directory above is asked.
func findProjectPolicy(dir string) (string, error) {
	found := ""
	for d := dir; ; d = filepath.Dir(d) {
		if found == "" {
			file := filepath.Join(d, projectPolicyFile)
			switch _, err := os.Lstat(file); {
			case err == nil:
				found = file
			case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission):
				return "", fmt.Errorf("looking for a project policy: %w", err)
			}
		}
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return found, nil
		}
		if d == dir && found != "" {
			return found, nil
		}
		if d == filepath.Dir(d) {
			return "", nil
		}
	}
}
