package imports

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// keyFile says what becomes of each key: format, key, and a verb of apply, with a
// reason where that is "-".
//
//go:embed keys.txt
var keyFile string

// Left is one setting that was not taken over as it is.
type Left struct {
	Place string // a key, or a line's number and the line
	Why   string
}

// Result is what became of a file.
type Result struct {
	Format string
	Policy *policy.Policy
	Left   []Left // in the order of the file, or of the keys
}

// setting is one key of a file.
type setting struct {
	key    string         // as in keys.txt
	place  string         // as people find it
	values []string       // "$" is "$$" and a variable ${NAME}, as in a policy's paths
	bad    string         // an item that is no text
	own    *policy.Policy // the part for one system that it stands in, or nil
}

// Formats are the names of the formats.
func Formats() []string { return []string{"srt", "zed", "codex", "landrun", "firejail"} }

// Detect guesses the format of a file by its name and content; "" for unknown.
func Detect(name string, data []byte) string {
	for _, sign := range []struct{ format, suffix, word string }{
		{"codex", ".toml", "sandbox_mode"}, {"firejail", ".profile", "firejail"}, {"zed", "", `"terminal"`}, {"srt", "", `"filesystem"`}, {"srt", "", `"network"`}, {"landrun", "", "landrun "},
	} {
		if sign.suffix != "" && strings.HasSuffix(name, sign.suffix) || strings.Contains(string(data), sign.word) {
			return sign.format
		}
	}
	return ""
}

// Read makes a policy of a file in one of the formats. The errors name the
// place, and are all that is wrong with what is taken over.
func Read(format, name string, data []byte) (*Result, error) {
	r := &reader{name: name, Result: Result{Format: format, Policy: &policy.Policy{}}, keys: map[string][]string{}}
	decode := map[string]func([]byte) ([]setting, error){"srt": r.srt, "zed": r.zed, "codex": r.codex, "landrun": r.landrun, "firejail": r.firejail}[format]
	if decode == nil {
		return nil, fmt.Errorf("unknown format %q: there are %s", format, strings.Join(Formats(), ", "))
	}
	for line := range strings.Lines(keyFile) {
		if f := strings.SplitN(strings.TrimSpace(line), " ", 4); f[0] == format {
			r.keys[f[1]] = append(f[2:], "")
		}
	}
	r.to = r.Policy
	settings, err := decode(data)
	if err != nil {
		return nil, policy.Errors{{Origin: policy.Origin{Source: name}, Code: policy.CodeSyntax, Msg: "as " + format, Err: err}}
	}
	for _, s := range settings {
		r.apply(s)
	}
	if r.errs != nil {
		return nil, r.errs
	}
	return &r.Result, nil
}

// reader fills a Result.
type reader struct {
	Result
	name     string
	to       *policy.Policy      // Policy, or its part for one system
	keys     map[string][]string // verb and reason
	required bool                // the paths of rules have to be there
	errs     policy.Errors
}

// verb finds a key in keys.txt. What stands below one that is not taken over is
// not either.
func (r *reader) verb(key string) (verb, why string) {
	k := r.keys[key]
	for i := len(key); k == nil; {
		if i = strings.LastIndexByte(key[:i], '.'); i < 0 {
			k = append(r.keys["*"], "-", "zsbx does not know it")
		} else if up := r.keys[key[:i]]; up != nil && slices.Contains([]string{"-", "=", "set"}, up[0]) {
			k = up
		}
	}
	return k[0], k[1]
}

const (
	read       = policy.Read
	execute    = policy.Read | policy.Exec
	write      = policy.Read | policy.Write
	everything = policy.Read | policy.Write | policy.Exec
)

// apply does what the verb of a setting's key says.
func (r *reader) apply(s setting) {
	verb, why := r.verb(s.key)
	if r.to = r.Policy; s.own != nil {
		r.to = s.own
	}
	system := &r.to.FS.System
	switch {
	case verb == "=" || verb == "-" && (len(s.values) == 0 || s.values[0] == "false"):
	case verb == "-":
		r.left(s.place, why)
	case s.bad != "":
		r.fail(s.place, "a list of strings is needed, and it has %s", s.bad)
	case verb == "executable":
		system.Executable = append([]policy.Rule{}, r.rules(s.place, s.values, 0)...)
	case verb == "read_only":
		system.ReadOnly = append([]policy.Rule{}, r.rules(s.place, s.values, 0)...)
	case verb == "read_write":
		system.ReadWrite = append([]policy.Rule{}, r.rules(s.place, s.values, 0)...)
	case verb == "vars":
		r.environment(s.place, policy.EnvVars)
		verb = "env"
		fallthrough
	default:
		for _, v := range s.values {
			r.value(s, verb, v)
		}
	}
}

// value does for one value what a verb says.
func (r *reader) value(s setting, verb, v string) {
	switch verb {
	case "ro", "rox", "rw", "rwx":
		r.rule(s.place, v, map[string]policy.Access{"ro": read, "rox": execute, "rw": write, "rwx": everything}[verb])
	case "everywhere":
		r.rule(s.place, "/", everything)
	case "deny":
		r.deny(s.place, v)
	case "deny-write":
		r.deny(s.place, v)
		r.left(s.place+" "+v, "zsbx can't take writing alone away: it is denied wholly")
	case "read-only":
		if !r.narrow(v, policy.Write) && strings.HasPrefix(v, "~/") {
			r.value(s, "deny-write", v)
		}
	case "noexec":
		if !r.narrow(v, policy.Exec) {
			r.left(s.place, "files can be executed where a rule says so: use rw_noexec for a directory of its own")
		}
	case "net":
		r.network(s.place, v == "true")
	case "unix":
		r.to.Net.Unix = append(r.to.Net.Unix, policy.Named{Value: v, Optional: !r.required, Origin: r.origin(s.place)})
	case "connect":
		r.to.Net.ConnectTCP = append(r.to.Net.ConnectTCP, r.port(s.place, v))
	case "bind":
		r.to.Net.BindTCP = append(r.to.Net.BindTCP, r.port(s.place, v))
	case "inherit":
		r.environment(s.place, map[string]policy.EnvMode{"none": policy.EnvVars, "core": policy.EnvScrubbed, "all": policy.EnvSanitized}[v])
	case "exclude":
		r.left(s.place+" "+v, "no variable is taken away by name: the environment is scrubbed")
		r.environment(s.place, policy.EnvScrubbed)
	case "env":
		r.variable(s.place, v)
	case "set":
		r.variable(s.place, s.key[strings.LastIndexByte(s.key, '.')+1:]+"="+v)
	}
}

func (r *reader) left(place, why string) { r.Left = append(r.Left, Left{place, why}) }

func (r *reader) fail(place, format string, args ...any) {
	r.errs = append(r.errs, &policy.Error{Origin: policy.Origin{Source: r.name}, Code: policy.CodeValue, Msg: place + ": " + fmt.Sprintf(format, args...)})
}

func (r *reader) origin(place string) policy.Origin {
	return policy.Origin{Source: r.name + ": " + place}
}

// rules are rules for paths, but for those with patterns.
func (r *reader) rules(place string, paths []string, access policy.Access) (rules []policy.Rule) {
	for _, path := range paths {
		if strings.ContainsAny(path, "*?[") {
			r.left(place+" "+path, "rules take no patterns, only denials do")
			continue
		}
		if path != "/" {
			path = strings.TrimRight(path, "/")
		}
		rules = append(rules, policy.Rule{Path: path, Access: access, Optional: !r.required, Origin: r.origin(place)})
	}
	return rules
}

func (r *reader) rule(place, path string, access policy.Access) {
	r.to.FS.Rules = append(r.to.FS.Rules, r.rules(place, []string{path}, access)...)
}

// narrow takes an access from the rules for a path, and reports whether any had it.
func (r *reader) narrow(path string, access policy.Access) (had bool) {
	for i := range r.to.FS.Rules {
		if rule := &r.to.FS.Rules[i]; rule.Path == path && rule.Access&access != 0 {
			rule.Access, had = rule.Access&^access, true
		}
	}
	return had
}

func (r *reader) deny(place, path string) {
	r.to.FS.Deny = append(r.to.FS.Deny, policy.Deny{Pattern: strings.TrimRight(path, "/"), Origin: r.origin(place)})
}

func (r *reader) network(place string, allow bool) {
	r.to.Net.Allow = &policy.Flag{Value: allow, Origin: r.origin(place)}
}

func (r *reader) port(place, v string) policy.Port {
	n, err := strconv.ParseUint(strings.TrimSpace(v), 10, 16)
	if err != nil || n == 0 {
		r.fail(place, "port %q is not between 1 and 65535", v)
	}
	return policy.Port{Number: uint16(n), Origin: r.origin(place)}
}

// environment passes what a mode does, or less where a key before said so.
func (r *reader) environment(place string, mode policy.EnvMode) {
	width := []policy.EnvMode{policy.EnvVars, policy.EnvScrubbed, policy.EnvSanitized, ""}
	if e := &r.to.Env; slices.Index(width, mode) < slices.Index(width, e.Mode) {
		e.Mode, e.From = mode, r.origin(place)
	}
}

func (r *reader) variable(place, v string) {
	name, value, set := strings.Cut(strings.ReplaceAll(v, "$$", "\x00"), "=")
	switch {
	case strings.Contains(value, "${"):
		r.left(place+" "+name, "a policy's values are not expanded: pass it with --env")
	case set:
		value = strings.ReplaceAll(value, "\x00", "$")
		r.to.Env.Set = append(r.to.Env.Set, policy.Var{Name: name, Value: value, Origin: r.origin(place)})
	default:
		r.to.Env.Allow = append(r.to.Env.Allow, policy.Named{Value: name, Origin: r.origin(place)})
	}
}
