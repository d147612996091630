package policy

import (
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy/internal/tables"
)

// Programs agree on no one place for temporary files. A table lists what each kind of
// them asks, so that all of them end up in the run's private directory: what is
// anywhere else can't be written.

// tempSuffix is the variable that moves the directories which confstr(3) gives
// for _CS_DARWIN_USER_TEMP_DIR and _CS_DARWIN_USER_CACHE_DIR: its value is added
// to both. mktemp(1) and Foundation ask confstr before TMPDIR, or nothing else.
const tempSuffix = "DIRHELPER_USER_DIR_SUFFIX"

// tempVariables are all variables that send temporary files into dir, the
// private directory of a run on the system os.
func tempVariables(os, dir string) []Var {
	if os == "macos" {
		dir = shortened(dir)
	}
	var vars []Var
	for _, section := range []string{"temporary", "temporary " + os} {
		for _, v := range tables.Find(tables.Env(), section) {
			name, below, _ := strings.Cut(v, "=")
			vars = append(vars, Var{Name: name, Value: dir + below})
		}
	}
	if os == "macos" && PrivateCache(dir) != "" {
		vars = append(vars, Var{Name: tempSuffix, Value: dir[strings.LastIndexByte(dir, '/')+1:]})
	}
	if option := javaTemp(dir); option != "" {
		vars = append(vars, Var{Name: javaOptions, Value: option})
	}
	return vars
}

// PrivateCache is the directory that belongs to a private temporary directory
// as confstr(3)'s directory for caches to that for temporary files: of
// /var/folders/xy/z/T/NAME it is /var/folders/xy/z/C/NAME. Of a directory
// elsewhere it is "".
func PrivateCache(temp string) string {
	const folders = "/var/folders/"
	i := strings.Index(temp, folders)
	if i != 0 && (i < 0 || temp[:i] != "/private") {
		return ""
	}
	parts := strings.Split(temp[i+len(folders):], "/")
	if len(parts) != 4 || parts[2] != "T" || parts[0] == "" || parts[1] == "" || parts[3] == "" {
		return ""
	}
	parts[2] = "C"
	return temp[:i] + folders + strings.Join(parts, "/")
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

// javaOptions is the variable from which every Java virtual machine takes
// options, whoever starts it.
const javaOptions = "JAVA_TOOL_OPTIONS"

// javaTemp is the option that tells Java its temporary directory, "" where
// options can't hold its name. Java never looks at TMPDIR: it would use /tmp,
// which is closed, and File.createTempFile would fail in compilers, build tools
// and tests. The price is a line on stderr in which Java says that it has picked
// the variable up: see NameJavaTemp.
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

// NameJavaTemp says whether Java has to be told its temporary directory, as it has
// where /tmp is not the command's own. It changes nothing of what a policy or the
// caller says in the variable.
func (r *Resolved) NameJavaTemp(needed bool) {
	option := javaOptions + "=" + javaTemp(r.TempDir)
	at := slices.Index(r.Env, option)
	switch {
	case !needed && at >= 0:
		r.Env, r.javaTemp = slices.Delete(slices.Clone(r.Env), at, at+1), true
	case needed && r.javaTemp:
		at, _ := slices.BinarySearchFunc(r.Env, option, compareEnv)
		r.Env, r.javaTemp = slices.Insert(slices.Clone(r.Env), at, option), false
	}
}
