package resolve

import (
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/syntax"
	"github.com/zsbx/zsbx/internal/tables"
	"github.com/zsbx/zsbx/policy"
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
func tempVariables(os, dir string) []policy.Named {
	switch {
	case dir == "":
		return nil
	case os == "macos":
		dir = shortened(dir)
	}
	var vars []policy.Named
	for _, section := range []string{"temporary", "temporary " + os} {
		for _, v := range tables.Find(tables.Env, section) {
			name, below, _ := strings.Cut(v, "=")
			vars = append(vars, policy.Named{Name: name, Value: dir + below})
		}
	}
	if os == "macos" && PrivateCache(dir) != "" {
		vars = append(vars, policy.Named{Name: tempSuffix, Value: dir[strings.LastIndexByte(dir, '/')+1:]})
	}
	if option := javaTemp(dir); option != "" {
		vars = append(vars, policy.Named{Name: javaOptions, Value: option})
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
			rs.rule(policy.Rule{
				Path:     syntax.Literal(dir),
				Access:   policy.Read | policy.Write | policy.Exec,
				Optional: true,
				Origin:   policy.Origin{Source: sourceTemp},
			})
		}
	}
}

// shortened spells a directory as users of macOS know it: /var for
// /private/var. The path of a socket below it has 104 bytes in all (unix(4)).
func shortened(dir string) string {
	for _, top := range [...]string{"/tmp", "/var"} {
		if rest, ok := strings.CutPrefix(dir, "/private"); ok && host.Within(rest, top) {
			return rest
		}
	}
	return dir
}

// javaOptions is the variable from which every Java virtual machine takes
// options, whoever starts it.
const javaOptions = "JAVA_TOOL_OPTIONS"

// javaTemp returns the option for Java's temporary directory, or "" if options can't
// contain its name. Java never looks at TMPDIR: it would use /tmp, which is closed, and
// File.createTempFile would fail in compilers, build tools and tests. The price is a line
// on stderr, in which Java says that it has picked up the variable: see EnvWith.
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

// EnvWith returns the command's environment: Env, without Java's option if the command has a
// private /tmp. A variable that a policy or the caller has set stays.
func (r *Resolved) EnvWith(privateTmp bool) []string {
	option := javaOptions + "=" + javaTemp(r.TempDir)
	return slices.DeleteFunc(slices.Clone(r.Env), func(v string) bool { return privateTmp && v == option })
}
