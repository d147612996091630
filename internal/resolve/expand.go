package resolve

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/syntax"
	"github.com/zsbx/zsbx/policy"
)

// view is the machine as paths are expanded on it: presets see the variables that a policy sets.
type view struct {
	host.Host
	agents string // what coding agents add to the name of the project's own cache
}

// absolute expands a path as it is written in a rule, without following links.
func (v *view) absolute(s string) (string, error) {
	if err := syntax.CheckPath(s); err != nil {
		return "", err
	}
	return v.expand(s)
}

// expand is absolute without the checks of what is written.
func (v *view) expand(s string) (string, error) {
	if s[0] == '/' && strings.IndexByte(s, '$') < 0 {
		return path.Clean(s), nil
	}
	whole, err := v.whole(s, func(s string) string { return s })
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(whole, "/") {
		whole = v.Dir + "/" + whole
	}
	return path.Clean(whole), nil
}

// whole expands a path that may stay relative. It applies quote to what "~", "cwd" and
// variables stand for. "~" and "cwd" must be the first name of the path: a file of that
// name in the working directory is "./~" or "./cwd".
//
// It replaces $NAME and ${NAME} with their values, $$ with a dollar sign, and
// ${NAME:-word} with the first absolute path in the variable's value, or with the word,
// which is again a path. Tools refuse a value that is not an absolute path
// ("GOCACHE=off"), or take it relative to a directory that is not known here. Values
// are not expanded again.
func (v *view) whole(s string, quote func(string) string) (string, error) {
	base := ""
	first, rest, _ := strings.Cut(s, "/")
	switch first {
	case "~":
		base = v.Home
		if base == "" {
			return "", fmt.Errorf("$HOME %w", errUnset)
		}
	case "cwd":
		base = v.Dir
	default:
		rest = s
	}
	rest, err := syntax.ReplaceVariables(rest, func(in syntax.Variable) (string, error) {
		if !in.HasDefault {
			value, err := v.lookup(in.Name)
			return quote(value), err
		}
		value, _, _ := strings.Cut(v.Getenv(in.Name), ":") // GOPATH is a list; go writes to its first element only
		value = strings.TrimRight(value, "/")
		if strings.HasPrefix(value, "/") {
			return quote(value), nil
		}
		return v.whole(in.Word, quote)
	})
	if base == "" {
		return rest, err
	}
	return quote(base) + "/" + rest, err
}

var errUnset = errors.New("is not set, or empty (a dollar sign is written $$)")

// expandCode returns the code for an error of view.absolute or view.whole.
func expandCode(err error) policy.Code {
	if errors.Is(err, errUnset) {
		return policy.CodeVariable
	}
	return policy.CodeValue
}

// expanded returns a built-in path without "~" and variables, or "" if that is not possible.
func (v *view) expanded(s string) string {
	p, _ := v.expand(s)
	return p
}

// lookup returns a variable's value. An empty one counts as unset: "$CACHE/x" must never
// become "/x". PWD is the command's working directory, whatever the caller's PWD says.
func (v *view) lookup(name string) (string, error) {
	value := v.Getenv(name)
	switch name {
	case "$":
		return "$", nil
	case "PWD":
		value = v.Dir
	case cacheVariable:
		value = v.projectCache()
	case venvVariable:
		value = venv(&v.Host)
	case "HOME":
		value = cmp.Or(value, v.Home)
	}
	if value == "" {
		return "", fmt.Errorf("$%s %w", name, errUnset)
	}
	if syntax.HasControl(value) {
		return "", fmt.Errorf("$%s has a control character", name)
	}
	return value, nil
}

// cacheVariable names the project's own cache in a path.
const cacheVariable = "ZSBX_CACHE"

// The directories of projects' and agents' caches, below the directory for caches.
const (
	projectCaches = "/zsbx-caches/"
	agentCaches   = "/zsbx-agents"
)

// Caches returns the directories that the caches of projects and agents are in, whether they exist or not.
func Caches(h *host.Host) (dirs []string) {
	v := view{Host: *h}
	for _, place := range []string{"${XDG_CACHE_HOME:-~/.cache}", "~/.cache"} {
		base := v.expanded(place)
		for _, name := range []string{projectCaches, agentCaches} {
			dir := path.Join(base, name)
			if path.IsAbs(base) && !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// projectCache returns the project's own cache, or "" if there is no place for one. Its
// name is made from the working directory's, so no other project has it. A coding agent
// has a separate one, which is a place of secrets, because its login is in it.
func (v *view) projectCache() string {
	base := v.expanded("${XDG_CACHE_HOME:-~/.cache}")
	usual := v.expanded("~/.cache")
	// In the project other commands can read it.
	if v.agents != "" && base != usual && host.Within(v.Way(base).Path, v.Project()) {
		base = usual
	}
	if !path.IsAbs(base) {
		return ""
	}
	sum := sha256.Sum256([]byte(v.Dir))
	id := hex.EncodeToString(sum[:8])
	if v.agents != "" {
		return path.Clean(base) + agentCaches + "/" + id + v.agents
	}
	return path.Clean(base) + projectCaches + id
}

// forPresets returns the machine as presets see it: a variable that the policy sets moves a
// tool's directories as one of the caller's does. PATH and HOME stay as they are for
// programs outside.
func (v *view) forPresets(set []policy.Named) view {
	seen := *v
	var vars []string
	for _, v := range slices.Backward(set) { // of set the last one counts, in an environment the first
		if !v.Origin.BuiltIn() && v.Name != "PATH" && v.Name != "HOME" {
			vars = append(vars, v.Name+"="+v.Value)
		}
	}
	if vars != nil {
		seen.Env = append(vars, v.Env...)
	}
	return seen
}
