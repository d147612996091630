package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy/internal/tables"
)

// Programs do not agree on one place for temporary files. A table lists the variables that
// they use, so that all of them use the run's private directory: other places can't be
// written.

// tempSuffix is the variable that moves the directories that confstr(3) returns for
// _CS_DARWIN_USER_TEMP_DIR and _CS_DARWIN_USER_CACHE_DIR: its value is appended to both.
// mktemp(1) and Foundation use confstr before TMPDIR, or only confstr.
const tempSuffix = "DIRHELPER_USER_DIR_SUFFIX"

// tempVariables returns all variables that send temporary files into dir, the
// private directory of a run on the system os, "" for none.
func tempVariables(os, dir string) []Named {
	switch {
	case dir == "":
		return nil
	case os == "macos":
		dir = shortened(dir)
	}
	var vars []Named
	for _, section := range []string{"temporary", "temporary " + os} {
		for _, v := range tables.Find(tables.Env, section) {
			name, below, _ := strings.Cut(v, "=")
			vars = append(vars, Named{Name: name, Value: dir + below})
		}
	}
	if os == "macos" && PrivateCache(dir) != "" {
		vars = append(vars, Named{Name: tempSuffix, Value: dir[strings.LastIndexByte(dir, '/')+1:]})
	}
	if option := javaTemp(dir); option != "" {
		vars = append(vars, Named{Name: javaOptions, Value: option})
	}
	return vars
}

// PrivateCache returns the directory for caches that belongs to a private temporary
// directory, as in confstr(3): for /var/folders/xy/z/T/NAME it is
// /var/folders/xy/z/C/NAME, and for a directory elsewhere "".
func PrivateCache(temp string) string {
	if is, err := path.Match("/var/folders/?*/?*/T/?*", strings.TrimPrefix(temp, "/private")); !is || err != nil {
		return ""
	}
	dir, name := path.Split(temp)
	return path.Dir(path.Clean(dir)) + "/C/" + name
}

// temporary allows the private temporary directory, and the one for caches that
// belongs to it on macOS.
func (rs *resolver) temporary() {
	dirs := []string{rs.host.TempDir}
	if rs.host.OS == "macos" {
		dirs = append(dirs, PrivateCache(rs.host.TempDir))
	}
	for _, dir := range dirs {
		if dir != "" {
			rs.rule(Rule{Path: literal(dir), Access: Read | Write | Exec, Optional: true, Origin: Origin{Source: sourceTemp}})
		}
	}
}

// shortened spells a directory as users of macOS know it: /var for
// /private/var. The path of a socket below it has 104 bytes in all (unix(4)).
func shortened(dir string) string {
	for _, top := range [...]string{"/tmp", "/var"} {
		if rest, ok := strings.CutPrefix(dir, "/private"); ok && Within(rest, top) {
			return rest
		}
	}
	return dir
}

// The project's own cache. Programs outside start what is in some caches
// (npx, wrappers), or have hard links into them (uv, bun). A command that may write
// there can make them do what it wants, in other projects too. So the presets
// point these tools to a directory that belongs to one working directory and
// to commands under zsbx. It stays, so that the next run is fast.

// cacheVariable names it in a path.
const cacheVariable = "ZSBX_CACHE"

// projectCaches is the directory of these caches, below the directory for caches.
const projectCaches = "/zsbx-caches/"

// projectCache returns the project's own cache, or "" if there is no place for one. Its
// name is made from the working directory's, so no other project has it. A coding agent
// has a separate one, which is a place of secrets, because its login is in it.
func (h *Host) projectCache() string {
	base, usual := h.place("${XDG_CACHE_HOME:-~/.cache}"), h.place("~/.cache")
	if h.agents != "" && base != usual && Within(h.Follow(base).Path, h.Project()) { // where other commands can read it
		base = usual
	}
	if !path.IsAbs(base) {
		return ""
	}
	sum := sha256.Sum256([]byte(h.Dir))
	id := hex.EncodeToString(sum[:8])
	if h.agents != "" {
		return path.Clean(base) + "/zsbx-agents/" + id + h.agents
	}
	return path.Clean(base) + "/zsbx-caches/" + id
}

// cacheOfAgents returns what the agents' presets among the rules add to a cache's name:
// "-claude", or "" for none.
func cacheOfAgents(rules []Rule) string {
	var names []string
	for i := range rules {
		if r := &rules[i]; r.Path == "$"+cacheVariable && isAgent(r) {
			names = append(names, "-"+strings.TrimPrefix(r.Origin.Source, "preset "))
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), "")
}

// forPresets returns the host as presets see it: a variable that the policy sets moves a
// tool's directories as one of the caller's does. PATH and HOME stay as they are for
// programs outside.
func (h *Host) forPresets(set []Named) Host {
	own := *h
	var vars []string
	for _, v := range slices.Backward(set) { // of set the last one counts, in an environment the first
		if !v.Origin.BuiltIn() && v.Name != "PATH" && v.Name != "HOME" {
			vars = append(vars, v.Name+"="+v.Value)
		}
	}
	if vars != nil {
		own.Env = append(vars, h.Env...)
	}
	return own
}

// projectCache sets up the project's own cache: what is to be in it, and the variables
// that lead there. These are left out if it can't be made.
func (rs *resolver) projectCache(flat *Policy) {
	dir, usable := rs.presets.projectCache(), false
	if dir != "" {
		rs.w.exact = false
		if pl, err := rs.w.walk(dir); err == nil {
			dir = pl.path
			usable = slices.ContainsFunc(rs.r.Paths, func(p Path) bool { return p.Access&Write != 0 && p.Covers(dir) }) ||
				slices.ContainsFunc(rs.r.Create, func(p Path) bool { return p.Path == dir })
		}
	}
	if usable {
		rs.r.Cache = dir
		for _, l := range flat.FS.Cache {
			if to, err := rs.presets.absolute(l.To); err == nil {
				rs.r.CacheLinks = append(rs.r.CacheLinks, CacheEntry{l.Name, to, l.Copy})
			}
		}
	}
	flat.Env.Set = slices.DeleteFunc(flat.Env.Set, func(v Named) bool {
		return v.Origin.BuiltIn() && !usable && strings.Contains(v.Value, "$"+cacheVariable)
	})
	for i := range flat.Env.Set {
		if v := &flat.Env.Set[i]; v.Origin.BuiltIn() {
			v.Value = strings.ReplaceAll(v.Value, "$"+cacheVariable, dir)
		}
	}
}

// Java uses none of these variables. It needs an option for its temporary directory, and
// on macOS a variable for where it is itself.

// javaOptions is the variable from which every Java virtual machine takes
// options, whoever starts it.
const javaOptions = "JAVA_TOOL_OPTIONS"

// javaTemp returns the option for Java's temporary directory, or "" if options can't
// contain its name. Java never looks at TMPDIR: it would use /tmp, which is closed, and
// File.createTempFile would fail in compilers, build tools and tests. The price is a line
// on stderr, in which Java says that it has picked up the variable: see NameJavaTemp.
func javaTemp(dir string) string {
	if strings.ContainsAny(dir, `"'`+"\n") {
		return ""
	}
	option := "-Djava.io.tmpdir=" + dir
	if strings.ContainsAny(dir, " \t") {
		option = `"` + option + `"`
	}
	return option
}

// NameJavaTemp sets or removes Java's option for its temporary directory, which is needed
// where /tmp is not the command's own. It does not change a variable that a policy or the
// caller has set.
func (r *Resolved) NameJavaTemp(needed bool) {
	option := javaOptions + "=" + javaTemp(r.TempDir)
	if r.envOfJava == nil {
		r.envOfJava = r.Env
	}
	r.Env = r.envOfJava
	if !needed {
		r.Env = slices.DeleteFunc(slices.Clone(r.Env), func(v string) bool { return v == option })
	}
}

// java sets JAVA_HOME on a Mac where Java is in use and the variable is not set: to the
// last JDK by name in the first directory of JDKs that has one. /usr/bin/java would look
// for one through Spotlight, which does not answer in a sandbox.
func (f *envFilter) java(h *Host, presets []Named) {
	jvm := func(n Named) bool { return strings.TrimSuffix(n.Value, toolsOnly) == "jvm" }
	if h.OS != "macos" || f.mode == EnvVars || f.vars["JAVA_HOME"].value != "" || !slices.ContainsFunc(presets, jvm) {
		return
	}
	for _, place := range places("jdks macos") {
		dir := h.place(place)
		entries, _ := h.Entries(dir, -1)
		for _, e := range slices.Backward(entries) {
			home := dir + "/" + e.Name() + "/Contents/Home"
			if _, st, err := h.RealPath(home); err == nil && st.Mode.IsDir() {
				f.vars["JAVA_HOME"] = envVar{home, true}
				return
			}
		}
	}
}
