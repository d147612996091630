package cmd

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/units"
)

// profileFlags are the flags of profile.
type profileFlags struct {
	policyFlags

	format string
	os     string
	list   bool
}

func newProfile(a *app) *cobra.Command {
	o := &profileFlags{}
	c := &cobra.Command{
		Use:   "profile [flags] [--] [COMMAND [ARG...]]",
		Short: "Show what would be enforced",
		Long: `Show what run would enforce with the same flags: every path with the flag, the
file and line, the preset or the baseline that it comes from, the network, the
environment, the limits, what the kernel is told, and what is not enforced here.
COMMAND is not run: presets are detected from it. The private temporary directory
of a run is left out: it has a new name each time.`,
		Example: `  zsbx profile --print --rw . -- cargo build
  zsbx profile --format toml --rw . > policy.toml
  zsbx profile --format sbpl --os macos
  zsbx profile --list`,
		ValidArgsFunction: completeCommand,
		RunE:              func(_ *cobra.Command, args []string) error { return o.run(a, args) },
	}
	fs := c.Flags()
	fs.SetInterspersed(false)
	fs.Bool("print", false, "print a table for people (the default)")
	o.format = "text"
	a.choice(fs, &o.format, "format", []string{"text", "toml", "json", "landlock", "sbpl"}, "the `FORMAT`: text, toml, json, landlock or sbpl")
	a.choice(fs, &o.os, "os", []string{"linux", "macos"}, "print for the system `OS`: linux or macos")
	fs.BoolVar(&o.list, "list", false, "list the presets")
	fs.BoolVar(&a.say.json, "json", false, "the same as --format json")
	o.policyFlags.add(a, fs)
	return c
}

// check finds what is wrong with the flags.
func (o *profileFlags) check(a *app) error {
	o.apart(o.fs, "print", "format", "json")
	o.apart(o.fs, "format", "json")
	a.say.json = a.say.json || o.format == "json"
	if o.os == "" {
		o.os = map[string]string{"sbpl": "macos", "landlock": "linux"}[o.format]
	}
	o.failIf(o.format == "sbpl" && o.os != "macos" || o.format == "landlock" && o.os != "linux", "--format %s and --os %s can't be used together", o.format, o.os)
	return o.policyFlags.check()
}

func (o *profileFlags) run(a *app, argv []string) error {
	flagErr := o.check(a)
	if o.list && flagErr == nil {
		t := &table{}
		for _, p := range policy.Presets() {
			t.row(p.Name, p.Description)
		}
		return a.show(policy.Presets(), t)
	}
	c, err := o.compose(o.os, argv, flagErr)
	if err != nil {
		return err
	}
	opts := o.options(c)
	opts.NoTempDir = true // it has a new name each time
	return a.printPlan(c, opts, o.format)
}

// The types here are zsbx's JSON for a plan; docs/json.md describes it. Fields
// are only ever added.

type jsonPlan struct {
	OS      string          `json:"os"`
	Dir     string          `json:"dir"`
	Files   []string        `json:"policies"` // files in use, the weakest first
	Presets []string        `json:"presets"`
	Paths   []jsonPath      `json:"paths"`
	Deny    []jsonDeny      `json:"deny"`
	Skipped []jsonSkip      `json:"skipped"`
	Masked  []string        `json:"masked"`    // what is hidden from the command
	Covered []string        `json:"protected"` // what it can't change, whatever paths say
	Net     jsonNet         `json:"net"`
	Env     jsonEnv         `json:"env"`
	Limits  jsonLimits      `json:"limits"`
	Guard   []string        `json:"guard"`
	Layers  []enforce.Layer `json:"layers"`
	Gaps    []enforce.Gap   `json:"gaps"`

	Policy json.RawMessage `json:"policy,omitempty"` // all of it, as run -p reads it
}

type jsonPath struct {
	Path    string        `json:"path"`
	Access  string        `json:"access"`
	Written string        `json:"written"`
	Origin  policy.Origin `json:"origin"`
}

type jsonDeny struct {
	Pattern string        `json:"pattern"`
	Glob    bool          `json:"glob"`
	Written string        `json:"written"`
	Origin  policy.Origin `json:"origin"`
}

type jsonSkip struct {
	Written string        `json:"written"`
	Access  string        `json:"access"`
	Reason  string        `json:"reason"`
	Origin  policy.Origin `json:"origin"`
}

type jsonNet struct {
	Mode       string        `json:"mode"`
	Origin     policy.Origin `json:"origin"`
	ConnectTCP []uint16      `json:"connect_tcp"`
	BindTCP    []uint16      `json:"bind_tcp"`
	Unix       []string      `json:"unix"`
}

type jsonEnv struct {
	Passed  []string `json:"passed"` // names: values may be secrets
	LeftOut []string `json:"left_out"`
}

type jsonLimits struct {
	TimeoutSeconds float64 `json:"timeout_seconds,omitempty"`
	MaxOutputBytes int64   `json:"max_output_bytes,omitempty"`
	MemoryBytes    int64   `json:"memory_bytes,omitempty"`
	Pids           int64   `json:"pids,omitempty"`
	CPU            float64 `json:"cpu,omitempty"` // processors
}

// planJSON is the plan for programs.
func planJSON(plan *enforce.Plan, files []string) *jsonPlan {
	r, n := plan.Policy, plan.Policy.Net
	name := func(x policy.Named) string { return x.Value }
	number := func(p policy.Port) uint16 { return p.Number }
	j := &jsonPlan{
		OS: r.OS, Dir: r.Dir, Files: files, Presets: each(r.Presets, name), Guard: each(r.Guard.Lists, name),
		Paths: each(r.Paths, func(p policy.Path) jsonPath { return jsonPath{p.Path, p.Access.String(), p.Rule.Path, p.Rule.Origin} }),
		Deny: each(r.Deny, func(d policy.DenyPath) jsonDeny {
			return jsonDeny{d.Pattern, d.Glob, d.Deny.Pattern, d.Deny.Origin}
		}),
		Skipped: each(r.Skipped, func(s policy.Skip) jsonSkip {
			return jsonSkip{s.Rule.Path, s.Rule.Access.String(), s.Reason, s.Rule.Origin}
		}),
		Net: jsonNet{
			Mode: string(n.Mode), Origin: n.From, ConnectTCP: each(n.ConnectTCP, number), BindTCP: each(n.BindTCP, number),
			Unix: each(n.Unix, func(p policy.Path) string { return p.Path }),
		},
		Env: jsonEnv{Passed: envNames(r), LeftOut: r.EnvDrop},
		Limits: jsonLimits{
			TimeoutSeconds: r.Limits.Timeout.Seconds(), MaxOutputBytes: r.Limits.MaxOutput,
			MemoryBytes: r.Limits.Memory, Pids: r.Limits.Pids, CPU: float64(r.Limits.CPU) / units.Processor,
		},
		Layers: plan.Layers(), Gaps: plan.Gaps,
	}
	j.Masked, j.Covered = plan.Covered()
	var whole bytes.Buffer
	if r.Policy().EncodeJSON(&whole) == nil {
		j.Policy = whole.Bytes()
	}
	return j
}

// each is what f makes of every element.
func each[T, U any](list []T, f func(T) U) (all []U) {
	for _, x := range list {
		all = append(all, f(x))
	}
	return all
}

// envNames are the names of the variables that the command gets.
func envNames(r *policy.Resolved) []string {
	return each(r.Env, func(kv string) string { return strings.SplitN(kv, "=", 2)[0] })
}
