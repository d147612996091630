package cmd

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/presets"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/units"
	"github.com/zsbx/zsbx/policy"
)

type profileFlags struct {
	policyFlags

	format string
	os     string
	list   bool
}

func newProfile(a *app) *cobra.Command {
	o := &profileFlags{}
	c := command("profile", func(args []string) error { return o.run(a, args) })
	fs := c.Flags()
	fs.Bool("print", false, "print a table for people (the default)")
	o.format = "text"
	a.choice(fs, &o.format, "format", []string{"text", "toml", "json", "landlock", "sbpl"},
		"print as `FORMAT`: text, toml, json, landlock or sbpl")
	a.choice(fs, &o.os, "os", []string{"linux", "macos"}, "print for the system `OS`: linux or macos")
	fs.BoolVar(&o.list, "list", false, "list the presets")
	fs.BoolVar(&a.say.json, "json", false, "the same as --format json")
	o.policyFlags.add(a, fs)
	return c
}

func (o *profileFlags) check(a *app) error {
	if a.say.json {
		o.format = "json"
	}
	a.say.json = o.format == "json"
	o.failIf(o.given("print") && o.format != "text", "--print and --format %s can't be used together", o.format)
	if o.os == "" {
		o.os = map[string]string{"sbpl": "macos", "landlock": "linux"}[o.format]
	}
	o.failIf(o.format == "sbpl" && o.os != "macos" || o.format == "landlock" && o.os != "linux",
		"--format %s and --os %s can't be used together", o.format, o.os)
	return o.policyFlags.check()
}

func (o *profileFlags) run(a *app, argv []string) error {
	flagErr := o.check(a)
	if o.list && flagErr == nil {
		t := &table{}
		for _, p := range presets.All() {
			t.row(p.Name, p.Description)
		}
		return a.show(presets.All(), t)
	}
	c, err := o.compose(o.os, argv, flagErr)
	if err != nil {
		return err
	}
	opts := o.options(c)
	opts.NoTempDir = true // the directory has a new name each time
	return a.printPlan(c, opts, argv, o.format)
}

// planJSON returns the plan for programs; docs/json.md describes it. Fields may be added,
// never removed. Of variables it has only the names: values may be secrets.
func planJSON(plan *enforce.Plan, files []string) map[string]any {
	r := plan.Policy
	n := plan.Policy.Net
	name := func(x policy.Named) string { return x.Value }
	number := func(p policy.Port) uint16 { return p.Number }
	covered := plan.Covered()
	all := map[string]any{
		"os": r.OS, "dir": r.Dir, "policies": files, "presets": each(r.Presets, name),
		"paths": each(r.Paths, func(p resolve.Path) any {
			return map[string]any{
				"path":    p.Path,
				"access":  p.Access.String(),
				"written": p.Rule.Path,
				"origin":  p.Rule.Origin,
			}
		}),
		"deny": each(r.Deny, func(d resolve.DenyPath) any {
			return map[string]any{
				"pattern": d.Pattern,
				"glob":    d.Glob,
				"written": d.Deny.Value,
				"origin":  d.Deny.Origin,
			}
		}),
		"skipped": each(r.Skipped, func(s resolve.Skip) any {
			return map[string]any{
				"written": s.Rule.Path,
				"access":  s.Rule.Access.String(),
				"reason":  s.Reason,
				"origin":  s.Rule.Origin,
			}
		}),
		"masked":    covered["mask"],
		"protected": covered["protect"],
		"net": map[string]any{
			"mode":        n.Mode,
			"origin":      n.From,
			"connect_tcp": each(n.ConnectTCP, number),
			"bind_tcp":    each(n.BindTCP, number),
			"hosts":       each(n.Hosts.Allowed, hostJSON),
			"deny_hosts":  each(n.Hosts.Denied, hostJSON),
			"unix":        each(n.Unix, func(p resolve.Path) string { return p.Path }),
		},
		"env": map[string]any{"passed": envNames(plan), "left_out": r.EnvDrop},
		"limits": jsonLimits{
			TimeoutSeconds: time.Duration(r.Limits.Timeout.Value).Seconds(),
			MaxOutputBytes: r.Limits.MaxOutput.Value,
			MemoryBytes:    r.Limits.Memory.Value,
			Pids:           r.Limits.Pids.Value,
			CPU:            float64(r.Limits.CPU.Value) / units.Processor,
		},
		"guard": each(r.Guard.Lists, name), "layers": plan.Layers(), "gaps": plan.Gaps,
	}
	var whole bytes.Buffer // as run -p reads it
	if r.Policy().EncodeJSON(&whole) == nil {
		all["policy"] = json.RawMessage(whole.Bytes())
	}
	return all
}

// jsonHost is a rule for hosts, or a denial. Private and ECH are left out if they are false.
type jsonHost struct {
	Host    string        `json:"host"` // as in a policy file: HOST[:PORT][/KIND]
	Private bool          `json:"private,omitempty"`
	ECH     bool          `json:"ech,omitempty"`
	Origin  policy.Origin `json:"origin"`
}

func hostJSON(h resolve.Host) jsonHost {
	return jsonHost{Host: h.Rule.String(), Private: h.Private, ECH: h.ECH, Origin: h.Origin}
}

type jsonLimits struct {
	TimeoutSeconds float64 `json:"timeout_seconds,omitempty"`
	MaxOutputBytes int64   `json:"max_output_bytes,omitempty"`
	MemoryBytes    int64   `json:"memory_bytes,omitempty"`
	Pids           int64   `json:"pids,omitempty"`
	CPU            float64 `json:"cpu,omitempty"` // processors
}

// each returns f of every element.
func each[T, U any](list []T, f func(T) U) (all []U) {
	for _, x := range list {
		all = append(all, f(x))
	}
	return all
}

// envNames returns the names of the variables that the command gets.
func envNames(plan *enforce.Plan) []string {
	return each(plan.Env, func(kv string) string { return strings.SplitN(kv, "=", 2)[0] })
}
