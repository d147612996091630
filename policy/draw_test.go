package policy

import (
	"time"

	"pgregory.net/rapid"

	"github.com/zsbx/zsbx/internal/units"
)

// Generators of policies. Values are drawn from small sets, so that policies have names and paths
// in common.

func drawOrigin(t *rapid.T) Origin {
	return Origin{Source: rapid.SampledFrom([]string{"a.toml", "b.toml", "--rw", "preset x"}).Draw(t, "source"), Line: rapid.IntRange(0, 99).Draw(t, "line"), Column: 1}
}

func drawRules(t *rapid.T, label string, access ...Access) []Rule {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Rule {
		r := Rule{
			Path:     rapid.SampledFrom([]string{"/", "/etc", "/usr/bin", ".", "~/x", "cwd", "$HOME/y", "${X:-~/z}", "/ü \"q\" \\ '", "/a$$b", "link", "nope"}).Draw(t, "path"),
			Access:   rapid.SampledFrom(access).Draw(t, "access"),
			Optional: rapid.Bool().Draw(t, "optional"),
			Origin:   drawOrigin(t),
		}
		r.Create = r.Optional && rapid.Bool().Draw(t, "create")
		return r
	}), 0, 5).Draw(t, label)
}

func drawNamed(t *rapid.T, label string, values ...string) []Named {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Named {
		return Named{Value: rapid.SampledFrom(values).Draw(t, "value"), Origin: drawOrigin(t)}
	}), 0, 3).Draw(t, label)
}

func drawPorts(t *rapid.T, label string) []Port {
	if rapid.Bool().Draw(t, label+" given") {
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Port {
			return Port{rapid.Uint16Range(1, 65535).Draw(t, "port"), drawOrigin(t)}
		}), 0, 3).Draw(t, label)
	}
	return nil
}

// DrawHosts draws a list of hosts.
func DrawHosts(t *rapid.T) []Host {
	if rapid.IntRange(0, 3).Draw(t, "hosts given") > 0 {
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Host {
			h := Host{
				Rule:   rapid.SampledFrom([]string{"a.example", "*.a.example", "b.a.example", "b.a.example:22", "c.example:80", "c.example/tcp", "*", "10.0.0.0/8:443", "localhost:5432"}).Draw(t, "rule"),
				Origin: drawOrigin(t),
			}
			named := h.Rule[len(h.Rule)-1] == 'e' // TLS
			h.Private = named && rapid.Bool().Draw(t, "private host")
			h.ECH = named && rapid.Bool().Draw(t, "ech")
			return h
		}), 0, 3).Draw(t, "hosts")
	}
	return nil
}

// category is one of the lists of System.
type category struct {
	key    string
	access Access
	Rules  *[]Rule
}

// Categories lists System's lists with their names in a file, and the access of all rules in them.
func (s *System) Categories() [3]category {
	return [3]category{
		{"executable", Read | Exec, &s.Executable},
		{"read_only", Read, &s.ReadOnly},
		{"read_write", Read | Write, &s.ReadWrite},
	}
}

// DrawPolicy draws a policy. With deep it may have overrides.
func DrawPolicy(t *rapid.T, deep bool) *Policy {
	p := &Policy{Presets: drawNamed(t, "presets", "rust", "python:tools")}
	p.FS.Rules = drawRules(t, "rules", Read, Read|Exec, Read|Write, Read|Write|Exec)
	for _, n := range drawNamed(t, "deny", "**/.env", ".git/hooks", "/etc/[a-z]?", `\[x`, "~/.ssh") {
		p.FS.Deny = append(p.FS.Deny, Named{Value: n.Value, Origin: n.Origin})
	}
	for _, c := range p.FS.System.Categories() {
		if rapid.Bool().Draw(t, c.key) {
			*c.Rules = drawRules(t, c.key+" rules", c.access)
		}
	}
	if rapid.Bool().Draw(t, "net") {
		p.Net.Allow = Named{Value: rapid.SampledFrom([]string{"true", "false"}).Draw(t, "allow"), Origin: drawOrigin(t)}
	}
	p.Net.BindTCP = drawPorts(t, "bind")
	if rapid.Bool().Draw(t, "by hosts") {
		p.Net.Hosts = DrawHosts(t)
		p.Net.DenyHosts = drawNamed(t, "deny hosts", "b.a.example", "*.a.example:443", "10.1.0.0/16")
	} else { // the two contradict each other
		p.Net.ConnectTCP = drawPorts(t, "connect")
	}
	if rapid.Bool().Draw(t, "deny by") {
		p.Net.DenyBy = Named{Value: rapid.SampledFrom([]string{"error", "nxdomain"}).Draw(t, "deny by value"), Origin: drawOrigin(t)}
	}
	p.Net.Unix = drawNamed(t, "unix", "/run/x", "$HOME/s")
	for i := range p.Net.Unix {
		p.Net.Unix[i].Optional = rapid.Bool().Draw(t, "optional socket")
	}
	p.Env.Mode.Value = rapid.SampledFrom([]string{"", EnvScrubbed, EnvSanitized, EnvInherit, EnvVars}).Draw(t, "mode")
	if p.Env.Mode.Value != "" {
		p.Env.Mode.Origin = drawOrigin(t)
	}
	p.Env.Allow = drawNamed(t, "env", "A", "CARGO_*", "LD_PRELOAD")
	for _, n := range drawNamed(t, "set", "A", "B", "npm_config_//x") {
		p.Env.Set = append(p.Env.Set, Named{Name: n.Value, Value: rapid.SampledFrom([]string{"", "1", "a\n\"b\"\\\t\u0085ü"}).Draw(t, "value"), Origin: n.Origin})
	}
	if rapid.Bool().Draw(t, "timeout") {
		p.Limits.Timeout = Limit{int64(rapid.SampledFrom([]time.Duration{0, time.Second, 90 * time.Minute}).Draw(t, "duration")), Origin{Source: "--timeout"}}
	}
	if rapid.Bool().Draw(t, "output") {
		p.Limits.MaxOutput = Limit{rapid.Int64Range(0, 1<<40).Draw(t, "bytes"), Origin{Source: "--max-output"}}
	}
	for _, to := range []*Named{&p.Private.Home, &p.Private.Pids} {
		if rapid.Bool().Draw(t, "private") {
			*to = Named{Value: rapid.SampledFrom([]string{wordPrivate, wordShared}).Draw(t, "private value"), Origin: drawOrigin(t)}
		}
	}
	if rapid.Bool().Draw(t, "writes") {
		p.FS.Writes = Named{Value: rapid.SampledFrom([]string{wordTry, wordDirect}).Draw(t, "writes value"), Origin: drawOrigin(t)}
	}
	for _, l := range []*Limit{&p.Limits.Memory, &p.Limits.Pids, &p.Limits.CPU} {
		if rapid.Bool().Draw(t, "limit") {
			*l = Limit{rapid.Int64Range(0, 1<<20).Draw(t, "limit value"), Origin{Source: "--limit"}}
		}
	}
	if p.Limits.CPU.Value < units.Processor/100 {
		p.Limits.CPU.Value = 0
	}
	p.Guard.Lists = drawNamed(t, "guard", "catastrophic", "mine")
	for _, n := range drawNamed(t, "words", "rm -rf*", "a [b]\"") {
		p.Guard.Words = append(p.Guard.Words, Named{Name: rapid.SampledFrom([]string{"mine", "x-1"}).Draw(t, "list"), Value: n.Value, Origin: n.Origin})
	}
	for i, to := range []*Named{&p.Audit.Dir, &p.Audit.Keep, &p.Audit.Required} {
		if rapid.Bool().Draw(t, "audited") {
			*to = Named{Value: rapid.SampledFrom([][]string{{"~/x", "/a$$b"}, {"0", "9"}, {"true", "false"}}[i]).Draw(t, "audit"), Origin: drawOrigin(t)}
		}
	}
	if deep && rapid.Bool().Draw(t, "linux") {
		p.Linux = DrawPolicy(t, false)
	}
	if deep && rapid.Bool().Draw(t, "macos") {
		p.MacOS = DrawPolicy(t, false)
	}
	return p
}
