package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy/glob"
	"github.com/zsbx/zsbx/policy/internal/tables"
)

// environment makes the command's environment of the caller's.
func (rs *resolver) environment(env *Env, presets []Named) {
	mode := cmp.Or(env.Mode.Value, EnvScrubbed)
	if err := checkEnvMode(mode); err != nil {
		rs.fail(env.Mode.Origin, CodeValue, "", err)
		return
	}
	f := envFilter{
		mode: mode, vars: make(map[string]envVar, len(rs.host.Env)+32), names: make(map[string]*Named, len(env.Allow)),
	}
	for i := range env.Allow {
		n := &env.Allow[i]
		if err := checkEnvGlob(n.Value); err != nil {
			rs.fail(n.Origin, CodeValue, "", err)
		}
		if glob.HasMeta(n.Value) {
			f.globs = append(f.globs, n.Value)
		} else if f.names[n.Value] == nil {
			f.names[n.Value] = n
		}
	}
	f.agent = rs.allowedAgent()
	for _, e := range rs.host.Env {
		f.caller(e)
	}
	f.private(rs.host)
	f.java(rs.host, presets)
	for _, v := range env.Set {
		if err := checkEnvName(v.Name); err != nil {
			rs.fail(v.Origin, CodeValue, "", err)
		} else if err := checkEnvValue(v.Value); err != nil {
			rs.fail(v.Origin, CodeValue, "", err)
		}
		f.vars[v.Name] = envVar{v.Value, true}
	}
	rs.r.Env = make([]string, 0, len(f.vars))
	for _, name := range slices.Sorted(maps.Keys(f.vars)) {
		if v := f.vars[name]; v.keep {
			rs.r.Env = append(rs.r.Env, name+"="+v.value)
		} else {
			rs.r.EnvDrop = append(rs.r.EnvDrop, name)
		}
	}
	rs.r.Warnings = append(rs.r.Warnings, f.warnings...)
}

// compareEnv orders NAME=VALUE by name.
func compareEnv(a, b string) int {
	an, _, _ := strings.Cut(a, "=")
	bn, _, _ := strings.Cut(b, "=")
	return strings.Compare(an, bn)
}

// allowedAgent is the caller's SSH_AUTH_SOCK if the policy lets the command
// connect to it.
func (rs *resolver) allowedAgent() string {
	if len(rs.r.Net.Unix) == 0 {
		return ""
	}
	sock, err := rs.host.lookup("SSH_AUTH_SOCK")
	if err != nil || !strings.HasPrefix(sock, "/") {
		return ""
	}
	pl, err := rs.w.walk(sock)
	if err != nil || pl.gone != "" {
		return ""
	}
	for i := range rs.r.Net.Unix {
		if Within(pl.path, rs.r.Net.Unix[i].Path) {
			return sock
		}
	}
	return ""
}

// envFilter decides about one variable after the other.
type envFilter struct {
	mode     string
	agent    string // value of SSH_AUTH_SOCK to pass on
	vars     map[string]envVar
	names    map[string]*Named // Env.Allow's names
	globs    []string          // Env.Allow's globs
	warnings Errors
}

// envVar is what was decided about a variable.
type envVar struct {
	value string
	keep  bool
}

// caller decides about an entry of the caller's environment. Of two with one
// name the first counts, as for getenv(3); what is not NAME=VALUE is dropped.
func (f *envFilter) caller(entry string) {
	name, value, ok := strings.Cut(entry, "=")
	if !ok || name == "" || strings.IndexByte(entry, 0) >= 0 {
		return
	}
	if _, seen := f.vars[name]; !seen {
		f.vars[name] = envVar{value, f.passes(name, value)}
	}
}

// passes decides whether a variable of the caller's reaches the command. What
// steers a loader or looks like a secret is not meant by a glob: it has to be
// named in full.
func (f *envFilter) passes(name, value string) bool {
	if f.mode == EnvInherit {
		return true
	}
	named, matched := f.allowed(name)
	loader := steersLoader(name)
	if loader && f.mode == EnvScrubbed {
		if named != nil {
			f.warnings = append(f.warnings, &Error{
				Origin: named.Origin, Code: CodeRefused,
				Msg:  fmt.Sprintf("%s was not passed on: it makes programs load other code", name),
				Hint: fmt.Sprintf(`--env %s="$%[1]s"`, name),
			})
		}
		return false
	}
	if named != nil {
		return true
	}
	if name == "SSH_AUTH_SOCK" && f.agent == value && value != "" && f.mode != EnvVars {
		return true
	}
	if !matched && f.mode != EnvSanitized && !(f.mode == EnvScrubbed && name != "XDG_RUNTIME_DIR" && in("kept", name)) {
		return false
	}
	return !loader && !SecretName(name) && !HasURLPassword(value)
}

// allowed finds a variable in Env.Allow: by its full name, or by a glob.
func (f *envFilter) allowed(name string) (named *Named, matched bool) {
	if named := f.names[name]; named != nil {
		return named, true
	}
	return nil, slices.ContainsFunc(f.globs, func(g string) bool { return glob.MatchName(g, name) })
}

// private points the variables for temporary files into the private
// directory, and PWD to the working directory. What the policy names in full
// is left as it is.
func (f *envFilter) private(h *Host) {
	set := func(name, value string) {
		if named, _ := f.allowed(name); named == nil {
			f.vars[name] = envVar{value, true}
		}
	}
	if h.TempDir != "" {
		for _, v := range tempVariables(h.OS, h.TempDir) {
			if old := f.vars[v.Name]; v.Name == javaOptions && old.keep && old.value != "" {
				v.Value = old.value + " " + v.Value
			}
			set(v.Name, v.Value)
		}
	}
	if f.mode != EnvVars {
		set("PWD", h.Dir)
	}
}

// in reports whether a section of the table of names has a name.
func in(section, name string) bool {
	return slices.ContainsFunc(tables.Find(tables.Env(), section), func(entry string) bool {
		return strings.HasPrefix(name, entry[:1]) && named(entry, name)
	})
}

// steersLoader reports variables that make a dynamic loader, a shell or an
// interpreter load or run other code than it was asked to.
func steersLoader(name string) bool { return in("loader", name) }

// SecretName reports names that look like those of secrets: a word of it, as
// separated by underscores, is one for a secret, or it belongs to a cloud's
// or a vault's family. Upper and lower case count the same.
func SecretName(name string) bool {
	name = strings.ToUpper(name)
	hasPart := func(part string) bool { return strings.Contains(name, part) }
	isSecret := func(word string) bool { return in("secret word", word) || strings.HasSuffix(word, "TOKEN") }
	words := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("_-.:/", r) })
	return in("secret", name) || slices.ContainsFunc(tables.Find(tables.Env(), "secret part"), hasPart) ||
		name != "PWD" && slices.ContainsFunc(words, isSecret)
}

// HasURLPassword reports a value that has a URL with a password in it, as
// database and proxy variables do. In one for HTTP a lone user name is taken
// for a token.
func HasURLPassword(value string) bool {
	for {
		scheme, after, ok := strings.Cut(value, "://")
		if !ok {
			return false
		}
		value = after
		if i := strings.IndexAny(after, "/?# \t\n,"); i >= 0 {
			after = after[:i]
		}
		user, _, ok := strings.Cut(after, "@")
		if ok && (strings.Contains(user, ":") || strings.HasSuffix(scheme, "http") || strings.HasSuffix(scheme, "https")) {
			return true
		}
	}
}
