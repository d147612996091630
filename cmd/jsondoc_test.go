package cmd

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/zsbx/zsbx/internal/layer/review"
	"github.com/zsbx/zsbx/internal/presets"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/track"
	"github.com/zsbx/zsbx/internal/why"
	"github.com/zsbx/zsbx/policy"
)

// TestJSONDocs: docs/json.md names every field of every JSON type, and every
// code of an error.
func TestJSONDocs(t *testing.T) {
	b, err := os.ReadFile("../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	for _, v := range []any{
		presets.Info{}, answer{}, jsonTracker{}, jsonLimits{}, jsonHost{}, jsonSession{}, supervise.HostEvent{}, track.Report{}, versionInfo{}, problem{}, supervise.AuditSession{}, why.Report{},
		jsonLayer{}, jsonApplied{}, tried{},
	} {
		for name := range jsonFields(reflect.TypeOf(v), map[string]bool{}) {
			if !strings.Contains(doc, "`"+name+"`") && !strings.Contains(doc, `"`+name+`":`) {
				t.Errorf("docs/json.md does not name %s of %T", name, v)
			}
		}
	}
	for _, k := range []review.Kind{
		review.Conflict, review.Refused, review.Acts, review.Protected, review.Replaces, review.Leaves, review.Shared,
	} {
		if !strings.Contains(doc, "`"+string(k)+"`") {
			t.Errorf("docs/json.md does not name the kind %s", k)
		}
	}
	t.Chdir(t.TempDir())
	t.Setenv("HOME", t.TempDir())
	if err := os.WriteFile(resolve.ProjectFile, []byte("[fs]\nrw = [\".\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check", "--trust", "--json"}, {"check", "--json", "--self-test"},
		{"profile", "--json", "--allow-host", "x.example", "--deny-host", "x.example"},
		{"profile", "--json", "--rw", ".", "--deny", "x", "--ro", "none", "--ignore-missing", "--connect-tcp", "443", "--memory", "1G"},
	} {
		var out bytes.Buffer
		a := &app{stdout: &out, stderr: os.Stderr, env: os.Environ()}
		a.main(args)
		var all any
		if err := json.Unmarshal(out.Bytes(), &all); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		names := map[string]bool{}
		jsonKeys(all, names)
		if len(names) < 7 {
			t.Errorf("%q: %v", args, names)
		}
		for name := range names {
			if !strings.Contains(doc, "`"+name+"`") && !strings.Contains(doc, `"`+name+`":`) {
				t.Errorf("docs/json.md does not name %s of %q", name, args)
			}
		}
		if args[1] == "--trust" {
			_ = os.Remove(resolve.ProjectFile)
		}
	}
	codes := []policy.Code{
		supervise.CodeFailed, supervise.CodeUsage, supervise.CodePolicy, supervise.CodeGap, supervise.CodeSession, supervise.CodeAudit,
		supervise.CodeNotFound, supervise.CodeCannotRun, codeUntrusted, codeOutput, codeShortage, policy.CodeGuard,
		policy.CodeSyntax, policy.CodeUnknownKey, policy.CodeDuplicate, policy.CodeType, policy.CodeValue, policy.CodeLimit, policy.CodeFile,
		policy.CodeMissing, policy.CodePath, policy.CodeVariable, policy.CodeContradiction, policy.CodeRefused, policy.CodeMore,
	}
	for _, c := range codes {
		if !strings.Contains(doc, "`"+string(c)+"`") {
			t.Errorf("docs/json.md does not name the code %s", c)
		}
	}
}

// jsonKeys collects the names in a value, except those of the policy file in it.
func jsonKeys(v any, names map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			jsonKeys(x, names)
		}
	case map[string]any:
		for name, x := range v {
			names[name] = true
			if name != "policy" {
				jsonKeys(x, names)
			}
		}
	}
}

// jsonFields collects the JSON names of a type's fields, and of the fields' types.
func jsonFields(typ reflect.Type, all map[string]bool) map[string]bool {
	switch typ.Kind() {
	case reflect.Slice, reflect.Pointer:
		return jsonFields(typ.Elem(), all)
	case reflect.Struct:
	default:
		return all
	}
	if typ == reflect.TypeFor[time.Time]() {
		return all
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" { // not printed
			continue
		}
		if name != "" {
			all[name] = true
		}
		jsonFields(f.Type, all)
	}
	return all
}
