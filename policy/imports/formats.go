package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
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
		err = toml.Unmarshal(data, &t)
	} else if data, err = hujson.Standardize(data); err == nil {
		err = json.Unmarshal(data, &t)
	}
	switch mode, _ := t["sandbox_mode"].(string); {
	case err != nil:
	case t == nil:
		err = errors.New("an object is needed")
	case r.Format == "zed" && !bytes.Contains(data, []byte(`"sandbox"`)):
		err = errors.New("there is no terminal.sandbox in it")
	case r.Format == "codex" && !r.begin("codex/"+mode):
		r.fail("sandbox_mode", "unknown mode %q", mode)
	case r.Format == "codex" && mode != "workspace-write":
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
	var words []*syntax.Word
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && words == nil {
			if i := slices.IndexFunc(c.Args, func(w *syntax.Word) bool { return strings.HasSuffix("/"+w.Lit(), "/landrun") }); i >= 0 {
				words = c.Args[i+1:]
			}
		}
		return words == nil
	})
	if words == nil {
		return nil, errors.New("there is no landrun command in it")
	}
	r.left("(no baseline)", "landrun opens nothing by itself: run with --no-baseline to have no presets, no files of shells and no private temporary directory either")
	for len(words) > 0 {
		flag := r.word(words[0])
		if words = words[1:]; !strings.HasPrefix(flag, "-") || flag == "--" {
			break
		}
		name, value, given := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		s := setting{key: name, place: "--" + name}
		switch actions, _ := r.find(s); {
		case strings.ContainsAny(actions, "-=") && name != "log-level":
			on, err := strconv.ParseBool(value)
			if given && actions != "-" && err != nil {
				r.fail(s.place, "%q: true or false is needed", value)
			}
			if given && err == nil && !on { // the last one counts
				all = slices.DeleteFunc(all, func(before setting) bool { return before.key == name })
				continue
			}
			value = "true"
		case !given && len(words) == 0:
			return nil, fmt.Errorf("--%s has no value", name)
		case !given:
			value, words = r.word(words[0]), words[1:]
		}
		if s.values = strings.Split(value, ","); name == "env" {
			s.values = []string{value}
		}
		all = append(all, s)
	}
	return all, nil
}

// word is a word of a script.
func (r *reader) word(w *syntax.Word) string {
	text := guard.Text(w.Parts, func(name string) string { return ofCaller + "{" + name + "}" })
	if strings.ContainsRune(text, 0) {
		r.fail(w.Pos().String(), "what it expands to is not known")
	}
	return text
}

// firejail reads a profile. What it does not name is readable, and the home
// directory writable, unless it has whitelists. They come first, wherever they stand.
func (r *reader) firejail(data []byte) (all []setting, err error) {
	var first []setting
	home, macros := true, strings.NewReplacer(strings.Fields(line("$", "firejail"))...)
	for i, text := range strings.Split(string(data), "\n") {
		if text = strings.TrimSpace(text); text == "" || text[0] == '#' {
			continue
		}
		key, value, _ := strings.Cut(text, " ")
		value = macros.Replace(strings.TrimSpace(value))
		s := setting{key, fmt.Sprintf("%d: %s", i+1, text), []string{value}}
		switch {
		case key != "env" && strings.Contains(value, "${"):
			r.left(s.place, "zsbx does not know what the variable in it stands for")
			continue
		case key == "private", (key == "whitelist" || key == "allow") && strings.HasPrefix(value, "~"):
			home = false
		case key == "protocol" && strings.Contains(value, "inet"):
			continue
		}
		if strings.HasPrefix(key, "whitelist") || key == "allow" {
			first = append(first, s)
		} else {
			all = append(all, s)
		}
	}
	if home {
		r.begin("firejail/home")
	}
	return append(first, all...), nil
}
