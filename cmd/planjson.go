package cmd

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/policy"
)

// The types here are zsbx's JSON for a plan; docs/json.md describes it. Fields
// are only ever added.

type jsonPlan struct {
	OS      string     `json:"os"`
	Dir     string     `json:"dir"`
	Files   []string   `json:"policies"` // files in use, the weakest first
	Presets []string   `json:"presets"`
	Paths   []jsonPath `json:"paths"`
	Deny    []jsonDeny `json:"deny"`
	Skipped []jsonSkip `json:"skipped"`
	Masked  []string   `json:"masked"`    // what is hidden from the command
	Covered []string   `json:"protected"` // what it can't change, whatever paths say
	Net     jsonNet    `json:"net"`
	Env     jsonEnv    `json:"env"`
	Limits  jsonLimits `json:"limits"`
	Guard   []string   `json:"guard"`
	Layers  []jsonPair `json:"layers"`
	Gaps    []jsonGap  `json:"gaps"`

	Policy json.RawMessage `json:"policy,omitempty"` // all of it, as run -p reads it
}

type jsonPath struct {
	Path    string     `json:"path"`
	Access  string     `json:"access"`
	Written string     `json:"written"`
	Origin  jsonOrigin `json:"origin"`
}

type jsonDeny struct {
	Pattern string     `json:"pattern"`
	Glob    bool       `json:"glob"`
	Written string     `json:"written"`
	Origin  jsonOrigin `json:"origin"`
}

type jsonSkip struct {
	Written string     `json:"written"`
	Access  string     `json:"access"`
	Reason  string     `json:"reason"`
	Origin  jsonOrigin `json:"origin"`
}

type jsonOrigin struct {
	Source string `json:"source"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

type jsonNet struct {
	Mode       string     `json:"mode"`
	Origin     jsonOrigin `json:"origin"`
	ConnectTCP []uint16   `json:"connect_tcp"`
	BindTCP    []uint16   `json:"bind_tcp"`
	Unix       []string   `json:"unix"`
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

type jsonPair struct {
	Name   string `json:"name"`
	Detail string `json:"detail"`
}

type jsonGap struct {
	Name    string     `json:"name"`
	Kind    string     `json:"kind"`
	Promise string     `json:"promise"`
	Why     string     `json:"why"`
	Hint    string     `json:"hint,omitempty"`
	Origin  jsonOrigin `json:"origin,omitzero"`
}

func originJSON(o policy.Origin) jsonOrigin { return jsonOrigin{o.Source, o.Line, o.Column} }

// planJSON is the plan for programs.
func planJSON(plan *enforce.Plan, files []string) *jsonPlan {
	r := plan.Policy
	j := &jsonPlan{
		OS: r.OS, Dir: r.Dir, Files: append([]string{}, files...),
		Presets: []string{}, Paths: []jsonPath{}, Deny: []jsonDeny{}, Skipped: []jsonSkip{},
		Net: netJSON(r.Net),
		Env: jsonEnv{Passed: []string{}, LeftOut: append([]string{}, r.EnvDrop...)},
		Limits: jsonLimits{
			TimeoutSeconds: r.Limits.Timeout.Seconds(), MaxOutputBytes: r.Limits.MaxOutput,
			MemoryBytes: r.Limits.Memory, Pids: r.Limits.Pids, CPU: float64(r.Limits.CPU) / policy.CPUSecond,
		},
		Guard: []string{}, Layers: []jsonPair{}, Gaps: gapsJSON(plan.Gaps),
	}
	for _, n := range r.Guard.Lists {
		j.Guard = append(j.Guard, n.Value)
	}
	var whole bytes.Buffer
	if r.Policy().EncodeJSON(&whole) == nil {
		j.Policy = whole.Bytes()
	}
	masked, protected := plan.Covered()
	j.Masked, j.Covered = append([]string{}, masked...), append([]string{}, protected...)
	for _, p := range r.Presets {
		j.Presets = append(j.Presets, p.Value)
	}
	for _, p := range r.Paths {
		j.Paths = append(j.Paths, jsonPath{p.Path, p.Access.String(), p.Rule.Path, originJSON(p.Rule.Origin)})
	}
	for _, d := range r.Deny {
		j.Deny = append(j.Deny, jsonDeny{d.Pattern, d.Glob, d.Deny.Pattern, originJSON(d.Deny.Origin)})
	}
	for _, s := range r.Skipped {
		j.Skipped = append(j.Skipped, jsonSkip{s.Rule.Path, s.Rule.Access.String(), s.Reason, originJSON(s.Rule.Origin)})
	}
	for _, kv := range r.Env {
		name, _, _ := strings.Cut(kv, "=")
		j.Env.Passed = append(j.Env.Passed, name)
	}
	for _, l := range plan.Layers {
		j.Layers = append(j.Layers, jsonPair{l.Name, l.Detail})
	}
	return j
}

func netJSON(n policy.ResolvedNet) jsonNet {
	j := jsonNet{
		Mode: string(n.Mode), Origin: originJSON(n.From),
		ConnectTCP: []uint16{}, BindTCP: []uint16{}, Unix: []string{},
	}
	for _, p := range n.ConnectTCP {
		j.ConnectTCP = append(j.ConnectTCP, p.Number)
	}
	for _, p := range n.BindTCP {
		j.BindTCP = append(j.BindTCP, p.Number)
	}
	for _, p := range n.Unix {
		j.Unix = append(j.Unix, p.Path)
	}
	return j
}

func gapsJSON(gaps []enforce.Gap) []jsonGap {
	j := []jsonGap{}
	for _, g := range gaps {
		j = append(j, jsonGap{g.Name, string(g.Kind), g.Promise, g.Why, g.Hint, originJSON(g.Origin)})
	}
	return j
}
