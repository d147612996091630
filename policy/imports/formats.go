package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
	"mvdan.cc/sh/v3/syntax"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/guard"
)

// tree reads JSON with comments and commas before closing brackets, or TOML: srt's
// ~/.srt-settings.json, Zed's settings.json, codex' ~/.codex/config.toml.
func (r *reader) tree(data []byte) (all []setting, err error) {
	var t map[string]any
	if r.format == "codex" {
		t = map[string]any{}
		err = toml.Unmarshal(data, &t)
	} else if data, err = hujson.Standardize(data); err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err == nil && t == nil {
		err = errors.New("an object is needed")
	}
	switch r.format {
	case "codex":
		mode, _ := t["sandbox_mode"].(string)
		if !r.begin("codex/" + mode) {
			r.fail("sandbox_mode", "unknown mode %q", mode)
		}
		if mode != "workspace-write" {
			delete(t, "sandbox_workspace_write")
		}
	case "zed": // has settings for one system, too
		r.Policy.Linux, r.Policy.MacOS = &policy.Policy{}, &policy.Policy{}
	}
	found := r.format != "zed"
	for _, s := range flatten("", t) {
		for system, own := range map[string]*policy.Policy{"linux.": r.Policy.Linux, "macos.": r.Policy.MacOS} {
			if key, ok := strings.CutPrefix(s.key, system); ok && own != nil {
				s.key, s.to = key, own
			}
		}
		found = found || strings.HasPrefix(s.key, "terminal.sandbox.")
		all = append(all, s)
	}
	if err == nil && !found {
		err = errors.New("there is no terminal.sandbox in it")
	}
	return all, err
}

// flatten gives all settings below a value, sorted by their keys.
func flatten(key string, v any) (all []setting) {
	s := setting{key: key, place: key}
	add := func(v any) { s.values = append(s.values, strings.ReplaceAll(fmt.Sprint(v), "$", "$$")) }
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
			if text, ok := item.(string); s.bad == "" && (!ok || text == "") {
				s.bad = fmt.Sprintf("%#v", item)
			}
			add(item)
		}
	default:
		add(v)
	}
	return []setting{s}
}

// landrun reads the first command line of landrun in a shell script.
func (r *reader) landrun(data []byte) (all []setting, err error) {
	file, err := syntax.NewParser().Parse(bytes.NewReader(data), "")
	if err != nil {
		return nil, err
	}
	var args []*syntax.Word
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && args == nil {
			if i := slices.IndexFunc(c.Args, func(w *syntax.Word) bool { return strings.HasSuffix("/"+w.Lit(), "/landrun") }); i >= 0 {
				args = c.Args[i+1:]
			}
		}
		return args == nil
	})
	if args == nil {
		return nil, errors.New("there is no landrun command in it")
	}
	p := r.Policy
	p.FS.System = policy.System{Executable: []policy.Rule{}, ReadOnly: []policy.Rule{}, ReadWrite: []policy.Rule{}}
	p.Net.ConnectTCP, p.Net.BindTCP, r.required = []policy.Port{}, []policy.Port{}, true
	r.left("(no baseline)", "landrun opens nothing by itself: run with --no-baseline to have no presets, no files of shells and no private temporary directory either")
	for len(args) > 0 {
		flag := r.word(args[0])
		if args = args[1:]; !strings.HasPrefix(flag, "-") || flag == "--" {
			break
		}
		name, value, given := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		switch verb, _ := r.verb(name); {
		case name == "unrestricted-network":
			value, p.Net.ConnectTCP, p.Net.BindTCP = "true", nil, nil
		case verb == "-" || verb == "=" && name != "log-level" || verb == "everywhere":
			value, r.required = "true", r.required && name != "ignore-missing"
		case !given && len(args) == 0:
			return nil, fmt.Errorf("--%s has no value", name)
		case !given:
			value, args = r.word(args[0]), args[1:]
		}
		s := setting{key: name, place: "--" + name, values: []string{value}}
		if name != "env" {
			s.values = strings.Split(value, ",")
		}
		all = append(all, s)
	}
	return all, nil
}

// word is a word as a policy has it: variables stay.
func (r *reader) word(w *syntax.Word) string {
	text, known := guard.Text(w.Parts, func(name string) string { return "\x00{" + name + "}" })
	if !known {
		r.fail(w.Pos().String(), "what it expands to is not known")
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "$", "$$"), "\x00", "$")
}

// firejail reads a profile. What it does not name is readable, and the home
// directory writable, unless it has whitelists.
func (r *reader) firejail(data []byte) (all []setting, err error) {
	home, number := true, 0
	macros := strings.NewReplacer("${HOME}", "~", "${RUNUSER}", "/run/user/*", "${DESKTOP}", "~/Desktop", "${DOCUMENTS}", "~/Documents",
		"${DOWNLOADS}", "~/Downloads", "${MUSIC}", "~/Music", "${PICTURES}", "~/Pictures", "${VIDEOS}", "~/Videos")
	for line := range strings.Lines(string(data)) {
		number++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, value, _ := strings.Cut(line, " ")
		s := setting{key: key, place: fmt.Sprintf("%d: %s", number, line), values: []string{macros.Replace(strings.TrimSpace(value))}, to: r.Policy}
		path, verb := s.values[0], ""
		if verb, _ = r.verb(key); key[0] == '?' {
			s.key = "?"
		}
		switch {
		case key == "private" && path == "":
			home = false
		case key == "net" && path == "none", key == "protocol" && !strings.Contains(path, "inet"):
			r.value(s, "net.allow", "false")
		case key == "protocol":
		case verb != "-" && verb != "=" && verb != "env" && strings.Contains(path, "$"):
			r.left(s.place, "zsbx does not know what the variable in it stands for")
		default:
			home = home && key != "private" && !(strings.HasPrefix(path, "~") && (key == "whitelist" || key == "allow"))
			s.values[0] = strings.ReplaceAll(path, "$", "$$")
			all = append(all, s)
		}
	}
	if home {
		r.begin("firejail/home")
	}
	return all, nil
}
