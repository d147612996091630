package policy

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated half of docs/presets.md")

// TestPresetsDocs checks that the generated half of docs/presets.md is what
// the presets say; with -update it writes it.
func TestPresetsDocs(t *testing.T) {
	const file, mark = "../docs/presets.md", "do not edit below -->\n"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, old, ok := strings.Cut(string(data), mark)
	if !ok {
		t.Fatalf("%s: no mark", file)
	}
	var b strings.Builder
	for _, info := range Presets() {
		p, err := Preset(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s.\n\nDetected by", info.Name, info.Description)
		sep := " "
		for _, d := range []struct {
			what  string
			names []string
		}{{"command", info.Commands}, {"file", info.Files}, {"program in", info.Dirs}} {
			if len(d.names) > 0 {
				fmt.Fprintf(&b, "%s%s `%s`", sep, d.what, strings.Join(d.names, "`, `"))
				sep = "; "
			}
		}
		b.WriteString(".\n\n| path | access |\n|---|---|\n")
		docRules(&b, p, "")
		docRules(&b, p.Linux, ", Linux")
		docRules(&b, p.MacOS, ", macOS")
		var env []string
		for _, n := range p.Env.Allow {
			env = append(env, "`"+n.Value+"`")
		}
		for _, v := range p.Env.Set {
			env = append(env, "`"+v.Name+"="+v.Value+"` (set)")
		}
		if len(env) > 0 {
			fmt.Fprintf(&b, "\nEnvironment: %s.\n", strings.Join(env, ", "))
		}
	}
	if b.String() == old {
		return
	}
	if !*update {
		t.Fatalf("%s is out of date: run go test ./policy -run TestPresetsDocs -update", file)
	}
	if err := os.WriteFile(file, []byte(head+mark+b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// docRules writes the rows of a table.
func docRules(b *strings.Builder, p *Policy, where string) {
	for _, r := range p.FS.Rules {
		what := map[Access]string{
			Read: "read", Read | Exec: "read, execute", Read | Write: "read, write", Read | Write | Exec: "read, write, execute",
		}[r.Access]
		if r.Create {
			what += ", made"
		}
		fmt.Fprintf(b, "| `%s` | %s%s |\n", r.Path, what, where)
	}
}
