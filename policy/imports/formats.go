package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
	"mvdan.cc/sh/v3/syntax"

	"github.com/zsbx/zsbx/policy/guard"
)

// tree reads JSON with comments and commas before closing brackets, or TOML: srt's
// ~/.srt-settings.json, Zed's settings.json, codex' ~/.codex/config.toml.
func (r *reader) tree(data []byte) ([]setting, error) {
	t, err := map[string]any{}, error(nil)
	if r.Format == "codex" {
		t["sandbox_mode"] = "read-only"
		err = toml.Unmarshal(data, &t)
	} else if data, err = hujson.Standardize(data); err == nil {
		err = json.Unmarshal(data, &t)
	}
	switch {
	case err != nil:
	case t == nil, r.Format == "zed" && !bytes.Contains(data, []byte(`"sandbox"`)):
		err = errors.New("there are no settings of a sandbox in it")
	case t["sandbox_mode"] != "workspace-write":
		delete(t, "sandbox_workspace_write")
	}
	return flatten("", t), err
}

// flatten gives all settings below a value, sorted by their keys.
func flatten(key string, v any) (all []setting) {
	s := setting{key: key, place: key}
	switch v := v.(type) {
	case nil:
		return nil
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			all = append(all, flatten(strings.TrimPrefix(key+"."+k, "."), v[k])...)
		}
		return all
	case []any:
		for _, item := range v {
			text, _ := item.(string)
			s.values = append(s.values, text)
		}
	default:
		s.values = []string{fmt.Sprint(v)}
	}
	return []setting{s}
}

// landrun reads the first command line of landrun in a shell script.
func (r *reader) landrun(data []byte) (all []setting, err error) {
	file, err := syntax.NewParser().Parse(bytes.NewReader(data), "")
	if err != nil {
		return nil, err
	}
	var args []string
	found, known := false, map[string]string{"HOME": "~", "PWD": "."}
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && !found {
			for _, w := range c.Args {
				text := guard.Text(w.Parts, known)
				if found {
					args = append(args, text)
				}
				found = found || path.Base(text) == "landrun"
			}
		}
		return !found
	})
	if !found {
		return nil, errors.New("there is no landrun command in it")
	}
	r.left("(no baseline)", "landrun opens nothing by itself: run with --no-baseline to have no presets, no files of shells and no private temporary directory either")
	flags := flag.NewFlagSet("landrun", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for key, actions := range r.keys {
		if strings.ContainsAny(actions, "-=") && key != "log-level" {
			flags.Bool(key, false, "")
			continue
		}
		flags.Func(key, "", func(v string) error {
			all = append(all, setting{key, "--" + key, strings.Split(v, ",")})
			return nil
		})
	}
	err = flags.Parse(args)
	flags.Visit(func(f *flag.Flag) {
		if f.Value.String() == "true" {
			all = append(all, setting{f.Name, "--" + f.Name, []string{"true"}})
		}
	})
	return all, err
}

// firejail reads a profile. What it does not name is readable, and the home
// directory writable, unless it has whitelists.
func (r *reader) firejail(data []byte) (all []setting, err error) {
	home, macros := true, strings.NewReplacer(append(strings.Fields(keys("$")["firejail"]), "${", "\x00")...)
	for i, text := range strings.Split(string(data), "\n") {
		if text = strings.TrimSpace(text); text == "" || text[0] == '#' {
			continue
		}
		key, value, _ := strings.Cut(text, " ")
		value = macros.Replace(strings.TrimSpace(value))
		all = append(all, setting{key, fmt.Sprintf("%d: %s", i+1, text), []string{value}})
		if key == "private" || (key == "whitelist" || key == "allow") && strings.HasPrefix(value, "~") {
			home = false
		}
	}
	if home {
		all = append(all, setting{"(home)", "(default)", []string{"~"}})
	}
	return all, nil
}
