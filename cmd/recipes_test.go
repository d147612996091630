package cmd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/rogpeppe/go-internal/testscript"
	"go.yaml.in/yaml/v3"

	"github.com/zsbx/zsbx/internal/shell"
)

const (
	recipePages   = "../docs/recipes"
	recipeScripts = "testdata/recipes"
)

// TestRecipes runs the scripts of docs/recipes with the files that the pages show. A script is called
// as its page, or as its page and what it needs: wrappers-npm. It begins in a project that is not in
// the home directory, with the page's files.
func TestRecipes(t *testing.T) {
	t.Parallel()
	needLimits(t)
	testscript.Run(t, testscript.Params{
		Dir:                 recipeScripts,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setupRecipe,
		Condition:           condition,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"take": takeCommand, "fits": fitsCommand},
	})
}

// setupRecipe writes the files that a script's page shows: into the project, or where their names say,
// which is below the script's home directory or below its directory "root".
func setupRecipe(e *testscript.Env) error {
	if err := setupScript(e); err != nil {
		return err
	}
	e.Cd = filepath.Join(e.WorkDir, "project")
	if err := os.MkdirAll(e.Cd, 0o755); err != nil {
		return err
	}
	repo, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	e.Setenv("REPO", repo)
	for name, dir := range toolDirs() {
		e.Setenv(name, dir)
	}
	script := strings.TrimPrefix(filepath.Base(e.WorkDir), "script-")
	page, err := os.ReadFile(recipePage(script))
	if err != nil {
		return err
	}
	shown, err := recipeFiles(string(page))
	for _, f := range shown {
		err = errors.Join(err, f.write(e))
	}
	return err
}

// toolDirs returns where real tools have what they need, by the variable that says so to them.
func toolDirs() map[string]string {
	dirs := map[string]string{}
	home, err := os.UserHomeDir()
	if err != nil {
		return dirs
	}
	cache, err := os.UserCacheDir()
	if err == nil {
		dirs["REAL_GOCACHE"] = cmp.Or(os.Getenv("GOCACHE"), filepath.Join(cache, "go-build"))
	}
	dirs["CARGO_BIN"] = filepath.Join(cmp.Or(os.Getenv("CARGO_HOME"), filepath.Join(home, ".cargo")), "bin")
	dirs["RUSTUP_HOME"] = cmp.Or(os.Getenv("RUSTUP_HOME"), filepath.Join(home, ".rustup"))
	return dirs
}

// recipePage returns the page of a script: the script's name, or the longest beginning of it that has a
// page.
func recipePage(script string) string {
	for name := script; name != ""; name = name[:max(strings.LastIndexByte(name, '-'), 0)] {
		page := filepath.Join(recipePages, name+".md")
		if _, err := os.Stat(page); err == nil {
			return page
		}
	}
	return filepath.Join(recipePages, script+".md")
}

// shownFile is a file in a page.
type shownFile struct {
	name string
	kind string // the language that the page gives it
	text string
}

func (f *shownFile) write(e *testscript.Env) error {
	name := filepath.Join(e.Cd, f.name)
	if in, ok := strings.CutPrefix(f.name, "~/"); ok {
		name = filepath.Join(e.Getenv("HOME"), in)
	} else if filepath.IsAbs(f.name) {
		name = filepath.Join(e.WorkDir, "root", f.name)
	}
	mode := os.FileMode(0o644)
	if strings.HasPrefix(f.text, "#!") {
		mode = 0o755
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(f.text), mode)
}

var (
	fenced    = regexp.MustCompile("(?ms)^(`([^`\n]*)`:\n\n?)?```([a-z]*)\n(.*?)^```$")
	firstLine = regexp.MustCompile(`^(?:#!.*\n)?(?:#|//) (\S+)\n`)
)

// recipeFiles returns the files that a page shows: fenced blocks of a language. What runs in a terminal
// is "console" or "sh" and no file, unless it has a name. A file's name is in a comment in its first line,
// or in the second after "#!"; JSON has no comments, so there the line before the block is the name.
func recipeFiles(page string) (files []shownFile, err error) {
	for _, m := range fenced.FindAllStringSubmatch(page, -1) {
		f := shownFile{name: m[2], kind: m[3], text: m[4]}
		if inside := firstLine.FindStringSubmatch(f.text); inside != nil {
			f.name = inside[1]
		}
		if f.name == "" && (f.kind == "console" || f.kind == "sh") {
			continue
		}
		if f.name == "" {
			err = errors.Join(err, fmt.Errorf("a block has no name:\n%s", f.text))
			continue
		}
		if bad := f.parse(); bad != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", f.name, bad))
		}
		files = append(files, f)
	}
	return files, err
}

// parse returns an error if the file is not well-formed.
func (f *shownFile) parse() error {
	var v any
	switch f.kind {
	case "json":
		return json.Unmarshal([]byte(f.text), &v)
	case "yaml":
		return yaml.Unmarshal([]byte(f.text), &v)
	case "toml":
		return toml.Unmarshal([]byte(f.text), &v)
	}
	return nil
}

// TestRecipePages: each recipe says what it protects and what goes wrong, in at most 300 words. It is
// in the list, has a script, and all its files are well-formed.
func TestRecipePages(t *testing.T) {
	const most = 300
	pages, err := filepath.Glob(filepath.Join(recipePages, "*.md"))
	if err != nil || len(pages) < 2 {
		t.Fatal(pages, err)
	}
	scripts, err := filepath.Glob(filepath.Join(recipeScripts, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	list := readPage(t, filepath.Join(recipePages, "README.md"))
	for _, page := range pages {
		text := readPage(t, page)
		if n := len(strings.Fields(text)); n > most {
			t.Errorf("%s has %d words, the bound is %d", page, n, most)
		}
		if _, err := recipeFiles(text); err != nil {
			t.Errorf("%s: %v", page, err)
		}
		if filepath.Base(page) == "README.md" {
			continue
		}
		for _, heading := range []string{"\n## What it protects\n", "\n## What goes wrong\n"} {
			if !strings.Contains(text, heading) {
				t.Errorf("%s lacks %q", page, heading)
			}
		}
		if !strings.Contains(list, "]("+filepath.Base(page)+")") {
			t.Errorf("%s is not in the list", page)
		}
		if !slices.ContainsFunc(scripts, func(s string) bool {
			return recipePage(strings.TrimSuffix(filepath.Base(s), ".txtar")) == page
		}) {
			t.Errorf("%s has no script", page)
		}
	}
}

// takeCommand writes a value of a YAML or JSON file into a file: take FILE PLACE TO. PLACE is a.0.b. A
// list becomes words for a shell.
func takeCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: take FILE PLACE TO")
	}
	v, err := yamlFile(ts.ReadFile(args[0]))
	ts.Check(err)
	for key := range strings.SplitSeq(args[1], ".") {
		list, isList := v.([]any)
		i, err := strconv.Atoi(key)
		switch {
		case isList && err == nil && i < len(list):
			v = list[i]
		case !isList:
			object, _ := v.(map[string]any)
			v = object[key]
		default:
			v = nil
		}
	}
	var text string
	switch v := v.(type) {
	case nil:
		ts.Fatalf("%s has no %s", args[0], args[1])
	case []any:
		var words []string
		for _, w := range v {
			words = append(words, shell.Quote(fmt.Sprint(w)))
		}
		text = strings.Join(words, " ") + "\n"
	default:
		text = fmt.Sprintln(v)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(text), 0o644))
}

// yamlFile returns what one YAML document says.
func yamlFile(text string) (v any, err error) {
	err = yaml.Unmarshal([]byte(text), &v)
	return v, err
}

// fitsCommand compares a YAML file with a definition in a JSON schema: fits FILE SCHEMA NAME.
func fitsCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: fits FILE SCHEMA NAME")
	}
	v, err := yamlFile(ts.ReadFile(args[0]))
	ts.Check(err)
	root := &schema{}
	read := json.NewDecoder(bytes.NewReader([]byte(ts.ReadFile(args[1]))))
	read.DisallowUnknownFields()
	ts.Check(read.Decode(root))
	named := &schema{Ref: "#/$defs/" + args[2]}
	bad := named.differ(root, v, "")
	switch {
	case neg && bad == nil:
		ts.Fatalf("%s fits", args[0])
	case !neg && bad != nil:
		ts.Fatalf("%s: %v", args[0], errors.Join(bad...))
	}
	for _, b := range bad {
		ts.Logf("%v", b)
	}
}

// schema is the part of JSON Schema that the manifests need. Objects have no other fields than those
// named.
type schema struct {
	Schema     string             `json:"$schema"`
	Comment    string             `json:"$comment"`
	Defs       map[string]*schema `json:"$defs"`
	Ref        string             `json:"$ref"` // "#/$defs/NAME"
	Type       string             `json:"type"`
	Enum       []any              `json:"enum"`
	Pattern    string             `json:"pattern"`
	Required   []string           `json:"required"`
	Properties map[string]*schema `json:"properties"`
	Additional bool               `json:"additionalProperties"` // never
	Items      *schema            `json:"items"`
	MinItems   int                `json:"minItems"`
	Minimum    int                `json:"minimum"`
}

// differ returns where a value does not fit.
func (s *schema) differ(root *schema, v any, at string) (bad []error) {
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
		return root.Defs[name].differ(root, v, at)
	}
	if kind := kindOf(v); kind != s.Type {
		return []error{fmt.Errorf("%s: %s instead of %s", at, kind, s.Type)}
	}
	if s.Enum != nil && !slices.Contains(s.Enum, v) {
		bad = append(bad, fmt.Errorf("%s: %v is none of %v", at, v, s.Enum))
	}
	if text, _ := v.(string); s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(text) {
		bad = append(bad, fmt.Errorf("%s: %q does not match %s", at, text, s.Pattern))
	}
	if number, is := v.(int); is && number < s.Minimum {
		bad = append(bad, fmt.Errorf("%s: %d is less than %d", at, number, s.Minimum))
	}
	list, _ := v.([]any)
	for i, item := range list {
		bad = append(bad, s.Items.differ(root, item, at+"."+strconv.Itoa(i))...)
	}
	if len(list) < s.MinItems {
		bad = append(bad, fmt.Errorf("%s: %d items", at, len(list)))
	}
	object, _ := v.(map[string]any)
	for _, name := range s.Required {
		if _, has := object[name]; !has {
			bad = append(bad, fmt.Errorf("%s: no %s", at, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		field := s.Properties[name]
		if field == nil {
			bad = append(bad, fmt.Errorf("%s: unknown field %s", at, name))
			continue
		}
		bad = append(bad, field.differ(root, object[name], at+"."+name)...)
	}
	return bad
}

// kindOf returns the name that JSON Schema has for a value's type.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case int:
		return "integer"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}
