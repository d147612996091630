package resolve

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/glob"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/presets"
	"github.com/zsbx/zsbx/internal/syntax"
	"github.com/zsbx/zsbx/internal/variables"
	"github.com/zsbx/zsbx/policy"
)

// environment makes the command's environment from the caller's.
func (rs *resolver) environment(env *policy.Env, presets []policy.Named) {
	mode := cmp.Or(env.Mode.Value, policy.EnvScrubbed)
	if err := syntax.CheckEnvMode(mode); err != nil {
		rs.fail(env.Mode.Origin, policy.CodeValue, "", err.Error())
		return
	}
	f := envFilter{
		mode:  mode,
		vars:  make(map[string]envVar, len(rs.host.Env)+32),
		names: make(map[string]*policy.Named, len(env.Allow)),
		agent: rs.allowedAgent(),
		hosts: rs.r.Net.Mode == NetHosts,
	}
	rs.allowVariables(&f, env.Allow)
	f.take(rs.host.Env)
	f.temp(&rs.host.Host)
	if mode != policy.EnvVars {
		f.set("PWD", rs.logicalDir())
	}
	rs.jobServer(f.vars)
	f.java(rs.host, presets)
	for _, v := range env.Set {
		if err := cmp.Or(syntax.CheckEnvName(v.Name), syntax.CheckEnvValue(v.Value)); err != nil {
			rs.fail(v.Origin, policy.CodeValue, "", err.Error())
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

// allowVariables notes the variables that the policy passes on.
func (rs *resolver) allowVariables(f *envFilter, allow []policy.Named) {
	for i := range allow {
		n := &allow[i]
		if err := syntax.CheckEnvGlob(n.Value); err != nil {
			rs.fail(n.Origin, policy.CodeValue, "", err.Error())
		}
		if glob.HasMeta(n.Value) {
			f.globs = append(f.globs, n.Value)
		} else if f.names[n.Value] == nil {
			f.names[n.Value] = n
		}
	}
}

// take takes the caller's variables. Of two with the same name the first counts, as for getenv(3).
func (f *envFilter) take(env []string) {
	for _, e := range env {
		name, value, ok := strings.Cut(e, "=")
		if _, seen := f.vars[name]; ok && name != "" && !seen && strings.IndexByte(e, 0) < 0 {
			f.vars[name] = envVar{value, f.passes(name, value)}
		}
	}
}

// set sets a variable unless the policy names it in full.
func (f *envFilter) set(name, value string) {
	if f.names[name] == nil {
		f.vars[name] = envVar{value, true}
	}
}

// temp sets the variables for the private temporary directory.
func (f *envFilter) temp(h *host.Host) {
	for _, v := range tempVariables(h.OS, h.TempDir) {
		if old := f.vars[v.Name]; v.Name == javaOptions && old.keep && old.value != "" {
			v.Value = old.value + " " + v.Value
		}
		f.set(v.Name, v.Value)
	}
}

// allowedAgent returns the caller's SSH_AUTH_SOCK if the policy lets the command connect
// to it, and otherwise "".
func (rs *resolver) allowedAgent() string {
	if len(rs.r.Net.Unix) == 0 {
		return ""
	}
	sock := rs.host.Getenv("SSH_AUTH_SOCK")
	at, _, err := rs.host.RealPath(sock)
	open := func(p Path) bool { return host.Within(at, p.Path) }
	if err != nil || !path.IsAbs(sock) || !slices.ContainsFunc(rs.r.Net.Unix, open) {
		return ""
	}
	return sock
}

// envFilter decides about one variable after the other.
type envFilter struct {
	mode     string
	agent    string // value of SSH_AUTH_SOCK to pass on
	hosts    bool   // zsbx uses the proxies itself
	vars     map[string]envVar
	names    map[string]*policy.Named // Env.Allow's names
	globs    []string                 // Env.Allow's globs
	warnings policy.Errors
}

// passes decides whether a variable of the caller's reaches the command. A glob does not
// include what controls a loader or looks like a secret: it must be named in full. Nor does it
// include a proxy if the network is limited to hosts: zsbx asks the proxy for the command.
func (f *envFilter) passes(name, value string) bool {
	named := f.names[name]
	if f.hosts && named == nil && variables.In("proxy", name) {
		return false
	}
	if f.mode == policy.EnvInherit {
		return true
	}
	loader := variables.SteersLoader(name)
	if loader && f.mode == policy.EnvScrubbed {
		if named != nil {
			f.warnings = append(f.warnings, &policy.Error{
				Origin: named.Origin, Code: policy.CodeRefused,
				Msg:  fmt.Sprintf("%s was not passed on: it makes programs load other code", name),
				Hint: fmt.Sprintf(`--env %s="$%[1]s"`, name),
			})
		}
		return false
	}
	if named != nil || name == "SSH_AUTH_SOCK" && f.agent == value && value != "" && f.mode != policy.EnvVars {
		return true
	}
	matched := slices.ContainsFunc(f.globs, func(g string) bool { return glob.MatchName(g, name) })
	needed := f.mode == policy.EnvScrubbed && name != "XDG_RUNTIME_DIR" && variables.In("kept", name)
	if !matched && f.mode != policy.EnvSanitized && !needed {
		return false
	}
	return !loader && !variables.IsSecret(name) && !variables.HasURLPassword(value)
}

// java sets JAVA_HOME on a Mac where Java is in use and the variable is not set: to the
// last JDK by name in the first directory of JDKs that has one. /usr/bin/java would look
// for one through Spotlight, which does not answer in a sandbox.
func (f *envFilter) java(v *view, names []policy.Named) {
	jvm := func(n policy.Named) bool { return strings.TrimSuffix(n.Value, presets.ToolsOnly) == "jvm" }
	set := f.vars["JAVA_HOME"].value != ""
	if v.OS != "macos" || f.mode == policy.EnvVars || set || !slices.ContainsFunc(names, jvm) {
		return
	}
	for _, place := range places("jdks macos") {
		dir := v.expanded(place)
		entries, _ := v.Entries(dir, -1) // harmless: JAVA_HOME stays unset
		for _, e := range slices.Backward(entries) {
			home := dir + "/" + e.Name() + "/Contents/Home"
			if _, st, err := v.RealPath(home); err == nil && st.Mode.IsDir() {
				f.vars["JAVA_HOME"] = envVar{home, true}
				return
			}
		}
	}
}

// LeftOut returns the variables of EnvDrop that a command may miss, the most likely first: those
// that are kept unless their value has a password, then others, then secrets, and those that steer
// a loader. Left out are those that shells, terminals and desktops set for themselves, what no shell could set,
// and proxies that zsbx asks itself. It returns nothing if the policy names all that the command gets.
func (r *Resolved) LeftOut() (names []string) {
	if r.env.Mode.Value == policy.EnvVars {
		return nil
	}
	likely := func(name string) int {
		switch {
		case variables.SteersLoader(name):
			return 3
		case variables.In("kept", name):
			return 0
		case variables.IsSecret(name):
			return 2
		}
		return 1
	}
	for _, name := range r.EnvDrop {
		if r.Net.Mode == NetHosts && variables.In("proxy", name) {
			continue
		}
		if syntax.NameLen(name) == len(name) && !variables.In("session", name) {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(likely(a), likely(b)) })
	return names
}
