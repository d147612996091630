package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/zsbx/zsbx/enforce"
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
	root   string   // of the outermost repository around the working directory, "" for none
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
	if err := a.judgeVariables(host); err != nil {
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
	host, short := enforce.Noted(&c.host)
	r, err := c.policy.Resolve(*host)
	if unknown := short(); unknown != nil {
		return nil, unknown
	}
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
		base, err := a.userPolicy()
		use(a.userPolicyPath(), base, err)
		files, root, err := findProjectPolicies(c.host.Dir)
		if c.root = root; err != nil {
			errs = append(errs, coded(codePolicy, err))
		}
		for _, file := range files {
			p, err := o.projectPolicy(a, file, base)
			if p != nil && filepath.Dir(file) != c.host.Dir {
				p.AnchorDenials(filepath.Dir(file))
			}
			use(file, p, err)
			base = policy.Merge(base, p)
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

func (a *app) userPolicyPath() string { return filepath.Join(a.configHome(), userPolicyFile) }

// userPolicy reads the user's policy, nil for none.
func (a *app) userPolicy() (*policy.Policy, error) {
	p, err := policy.DecodeFile(a.userPolicyPath())
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoHome) {
		return nil, nil
	}
	return p, err
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
		dirs := []string{"/tmp", "/var/tmp"}
		if own := userTemp(); own != "" { // macOS: most programs never ask for another
			dirs = append(dirs, own)
		}
		for _, dir := range dirs {
			p.FS.Rules = append(p.FS.Rules, policy.Rule{
				Path: dir, Access: policy.Read | policy.Write | policy.Exec, Optional: true, Origin: flagOrigin("--shared-tmp"),
			})
		}
	}
	return p
}

// findProjectPolicies finds the project's policies, the outermost first: every
// .zsbx.toml from dir up to the root of the outermost repository around it, and
// that root. All of them count, so that a file or a repository that a command
// makes below can't take back what stands above. Outside of repositories only
// dir itself counts: nobody's directory above is asked. Nor is one asked from
// below in which everybody makes files.
func findProjectPolicies(dir string) (files []string, root string, err error) {
	count := 0
	for _, d := range upwards(dir) {
		if d != dir && slices.Contains(sharedDirs(), d) {
			continue
		}
		file := filepath.Join(d, projectPolicyFile)
		switch _, err := os.Lstat(file); {
		case err == nil:
			files = append(files, file)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, "", fmt.Errorf("looking for a project policy: %w", err)
		}
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			root, count = d, len(files)
		} else if d == dir {
			count = len(files)
		}
	}
	files = files[:count]
	slices.Reverse(files)
	return files, root, nil
}

// sharedDirs are the directories for everybody's temporary files.
func sharedDirs() []string {
	return []string{"/tmp", "/var/tmp", "/dev/shm", "/private/tmp", "/private/var/tmp"}
}
