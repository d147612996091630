package imports

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/zsbx/zsbx/policy"
)

//go:embed reasons.txt
var reasons string

// Left is one setting that was not taken over as it is.
type Left struct {
	Place string `json:"place"` // a key, or a line's number and its first word
	Why   string `json:"why"`
}

// Result is what became of a file.
type Result struct {
	Format string
	Policy *policy.Policy
	Left   []Left // in the order of the file, or of the keys
}

// Formats are the names of the formats.
func Formats() []string { return []string{"srt", "zed", "codex", "landrun", "firejail"} }

// Detect guesses the format of a file by its name and content; "" for unknown.
func Detect(name string, data []byte) string {
	text := string(data)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	switch {
	case strings.HasSuffix(name, ".toml"), has("sandbox_mode", "[sandbox_workspace_write]"):
		return "codex"
	case strings.HasSuffix(name, ".profile"), strings.HasSuffix(name, ".inc"):
		return "firejail"
	case has(`"sandbox"`, `"terminal"`):
		return "zed"
	case has(`"filesystem"`, `"network"`):
		return "srt"
	case has("landrun "):
		return "landrun"
	}
	return ""
}

// Read makes a policy of a file in one of the formats. The errors name the
// place, and are all that is wrong with what is taken over.
func Read(format, name string, data []byte) (*Result, error) {
	r := &reader{name: name, Result: Result{Format: format, Policy: &policy.Policy{}}}
	read := map[string]func([]byte) error{"srt": r.srt, "zed": r.zed, "codex": r.codex, "landrun": r.landrun, "firejail": r.firejail}[format]
	if read == nil {
		return nil, fmt.Errorf("unknown format %q: there are %s", format, strings.Join(Formats(), ", "))
	}
	if err := read(data); err != nil {
		return nil, policy.Errors{{Origin: policy.Origin{Source: name}, Code: policy.CodeSyntax, Msg: "as " + format, Err: err}}
	}
	if r.errs != nil {
		return nil, r.errs
	}
	return &r.Result, nil
}

// reader fills a Result.
type reader struct {
	Result
	name string
	errs policy.Errors
}

func (r *reader) left(place, why string) { r.Left = append(r.Left, Left{place, why}) }

// leave lists a setting that says something, with the reason in reasons.txt.
func (r *reader) leave(place string, s setting) {
	if len(s.values) == 0 || s.values[0] == "false" {
		return
	}
	for line := range strings.Lines(reasons) {
		if f := strings.SplitN(strings.TrimSpace(line), " ", 3); f[0] == r.Format && (f[1] == s.key || strings.HasPrefix(s.key, f[1]+".")) {
			if f[2] != "=" {
				r.left(place, f[2])
			}
			return
		}
	}
	r.left(place, "zsbx does not know it")
}

func (r *reader) fail(place, format string, args ...any) {
	r.errs = append(r.errs, &policy.Error{Origin: policy.Origin{Source: r.name}, Code: policy.CodeValue, Msg: place + ": " + fmt.Sprintf(format, args...)})
}

func (r *reader) origin(place string) policy.Origin {
	return policy.Origin{Source: r.name + ": " + place}
}

func (r *reader) rule(place, path string, access policy.Access) {
	if path != "/" {
		path = strings.TrimRight(path, "/")
	}
	if strings.ContainsAny(path, "*?[") {
		r.left(place+" "+path, "rules take no patterns, only denials do")
		return
	}
	r.Policy.FS.Rules = append(r.Policy.FS.Rules, policy.Rule{Path: path, Access: access, Optional: true, Origin: r.origin(place)})
}

func (r *reader) deny(place, path string) {
	r.Policy.FS.Deny = append(r.Policy.FS.Deny, policy.Deny{Pattern: strings.TrimRight(path, "/"), Origin: r.origin(place)})
}

func (r *reader) network(place string, allow bool) {
	r.Policy.Net.Allow = &policy.Flag{Value: allow, Origin: r.origin(place)}
}

func (r *reader) variable(place, v string) {
	if name, value, set := strings.Cut(v, "="); set {
		r.Policy.Env.Set = append(r.Policy.Env.Set, policy.Var{Name: name, Value: value, Origin: r.origin(place)})
	} else {
		r.Policy.Env.Allow = append(r.Policy.Env.Allow, policy.Named{Value: v, Origin: r.origin(place)})
	}
}

const (
	read       = policy.Read
	execute    = policy.Read | policy.Exec
	write      = policy.Read | policy.Write
	everything = policy.Read | policy.Write | policy.Exec

	wholly  = "zsbx can't take writing alone away: it is denied wholly"
	noNames = "zsbx has no limit by name: the network is closed; --net or --connect-tcp opens it for every host"
)

// setting is a key with its path, and its value: the strings of a list, or one
// text.
type setting struct {
	key    string
	values []string
}

// settings are all settings below v, sorted by their keys.
func (r *reader) settings(key string, v any) (all []setting) {
	switch v := v.(type) {
	case nil:
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			all = append(all, r.settings(strings.TrimPrefix(key+"."+k, "."), v[k])...)
		}
	case []any:
		s := setting{key: key}
		for _, item := range v {
			if text, ok := item.(string); ok && text != "" {
				s.values = append(s.values, strings.ReplaceAll(text, "$", "$$"))
			} else {
				r.fail(key, "a list of strings is needed, and it has %v", item)
			}
		}
		return []setting{s}
	default:
		return []setting{{key, []string{fmt.Sprint(v)}}}
	}
	return all
}

func (r *reader) rules(s setting, access policy.Access) {
	for _, path := range s.values {
		r.rule(s.key, path, access)
	}
}

// srt reads ~/.srt-settings.json.
func (r *reader) srt(data []byte) error {
	t, err := object(data)
	r.rule("filesystem", "/", execute)
	r.network("network", false)
	for _, s := range r.settings("", t) {
		switch s.key {
		case "filesystem.allowWrite":
			r.rules(s, everything)
		case "filesystem.denyRead", "filesystem.denyWrite":
			for _, path := range s.values {
				if r.deny(s.key, path); s.key == "filesystem.denyWrite" {
					r.left(s.key+" "+path, wholly)
				}
			}
		case "network.allowedDomains":
			for _, domain := range s.values {
				r.left(s.key+" "+domain, noNames)
			}
		case "network.allowUnixSockets":
			for _, path := range s.values {
				r.Policy.Net.Unix = append(r.Policy.Net.Unix, policy.Named{Value: path, Optional: true, Origin: r.origin(s.key)})
			}
		default:
			r.leave(s.key, s)
		}
	}
	return err
}

// zed reads the sandbox settings of Zed's settings.json, and those for one
// system.
func (r *reader) zed(data []byte) error {
	t, err := object(data)
	whole, found := r.Policy, false
	whole.Linux, whole.MacOS = &policy.Policy{}, &policy.Policy{}
	for i, p := range []*policy.Policy{whole, whole.Linux, whole.MacOS} {
		own := t
		if i > 0 {
			own, _ = t[[]string{"", "linux", "macos"}[i]].(map[string]any)
		}
		terminal, _ := own["terminal"].(map[string]any)
		if sandbox, ok := terminal["sandbox"]; ok {
			found, r.Policy = true, p
			r.sandbox(r.settings("", sandbox))
		}
	}
	if r.Policy = whole; err == nil && !found {
		return errors.New("there is no terminal.sandbox in it")
	}
	r.rule("project", ".", everything)
	return err
}

func (r *reader) sandbox(all []setting) {
	system := &r.Policy.FS.System
	for _, s := range all {
		switch s.key {
		case "system_paths.executable":
			system.Executable = r.category(s)
		case "system_paths.read_only":
			system.ReadOnly = r.category(s)
		case "system_paths.read_write":
			system.ReadWrite = r.category(s)
		case "additional_executable_paths":
			r.rules(s, execute)
		case "additional_read_only_paths":
			r.rules(s, read)
		case "additional_read_write_paths":
			r.rules(s, everything)
		case "allow_network":
			r.network(s.key, s.values[0] == "true")
		case "allowed_env_vars":
			r.onlyVars(s)
		default:
			r.leave(s.key, s)
		}
	}
}

// category replaces one of the baseline's lists, by an empty one too.
func (r *reader) category(s setting) []policy.Rule {
	rules := []policy.Rule{}
	for _, path := range s.values {
		rules = append(rules, policy.Rule{Path: path, Optional: true, Origin: r.origin(s.key)})
	}
	return rules
}

// onlyVars passes the variables that are listed, and no others.
func (r *reader) onlyVars(s setting) {
	r.Policy.Env.Mode, r.Policy.Env.From = policy.EnvVars, r.origin(s.key)
	for _, v := range s.values {
		r.variable(s.key, v)
	}
}

// codex reads the sandbox settings of ~/.codex/config.toml.
func (r *reader) codex(data []byte) error {
	t := map[string]any{}
	err := toml.Unmarshal(data, &t)
	mode, _ := t["sandbox_mode"].(string)
	r.network("sandbox_mode", mode == "danger-full-access")
	switch mode {
	case "danger-full-access":
		r.rule("sandbox_mode", "/", everything)
	case "workspace-write":
		r.rule("sandbox_mode", ".", everything)
		fallthrough
	case "read-only", "":
		r.rule("sandbox_mode", "/", execute)
	default:
		r.fail("sandbox_mode", "unknown mode %q", mode)
	}
	for _, s := range r.settings("", t) {
		top, _, _ := strings.Cut(s.key, ".")
		name, set := strings.CutPrefix(s.key, "shell_environment_policy.set.")
		switch {
		case s.key == "sandbox_mode", !slices.Contains([]string{"sandbox_workspace_write", "shell_environment_policy", "approval_policy", "default_permissions", "permissions"}, top):
		case top == "sandbox_workspace_write" && mode != "workspace-write":
		case s.key == "sandbox_workspace_write.writable_roots":
			r.rules(s, everything)
		case s.key == "sandbox_workspace_write.network_access":
			r.network(s.key, s.values[0] == "true")
		case s.key == "shell_environment_policy.include_only":
			r.onlyVars(s)
		case s.key == "shell_environment_policy.inherit":
			r.Policy.Env.Mode = map[string]policy.EnvMode{"none": policy.EnvVars, "core": policy.EnvScrubbed, "all": policy.EnvSanitized}[s.values[0]]
			if env, _ := t["shell_environment_policy"].(map[string]any); env["exclude"] != nil && s.values[0] == "all" {
				r.Policy.Env.Mode = policy.EnvScrubbed // it can only be narrower
			}
			r.Policy.Env.From = r.origin(s.key)
		case set:
			r.variable(s.key, name+"="+s.values[0])
		default:
			r.leave(s.key, s)
		}
	}
	return err
}

// object reads JSON with comments and commas before closing brackets.
func object(data []byte) (t map[string]any, err error) {
	out, comma := slices.Clone(data), -1
	for i := 0; i < len(out); i++ {
		rest, n := out[i:], 0
		switch {
		case bytes.HasPrefix(rest, []byte("//")):
			n = len(bytes.SplitN(rest, []byte("\n"), 2)[0])
		case bytes.HasPrefix(rest, []byte("/*")):
			n = len(bytes.SplitN(rest, []byte("*/"), 2)[0]) + 2
		case rest[0] == '"':
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
			comma = -1
		case rest[0] == ',':
			comma = i
		case (rest[0] == '}' || rest[0] == ']') && comma >= 0:
			out[comma], comma = ' ', -1
		case rest[0] > ' ':
			comma = -1
		}
		for j := range min(n, len(rest)) {
			rest[j] = ' '
		}
	}
	if err = json.Unmarshal(out, &t); err == nil && t == nil {
		err = errors.New("an object is needed")
	}
	return t, err
}
