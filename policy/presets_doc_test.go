package policy

import (
	"flag"
	"fmt"
	"os"
	"path"
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
		b.WriteString(".\n\n| path | access | what programs outside make of it |\n|---|---|---|\n")
		docRules(&b, p, "")
		docRules(&b, p.Linux, ", Linux")
		docRules(&b, p.MacOS, ", macOS")
		docLinks(&b, p, "")
		docLinks(&b, p.Linux, ", Linux")
		docLinks(&b, p.MacOS, ", macOS")
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
	docSecrets(&b)
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

// docSecrets writes the table of places that presets never open.
func docSecrets(b *strings.Builder) {
	b.WriteString("\n## Places of secrets\n\nAs of 2026-11-22. A preset's rule that names one, holds one or lies in one is dropped.\n\n| what | below | names |\n|---|---|---|\n")
	for _, g := range secretGroups() {
		fmt.Fprintf(b, "| %s | `%s` | `%s` |\n", g.kind, g.base, strings.Join(g.names, "`, `"))
	}
	b.WriteString("\nIn directories that presets open for the programs in them these files are denied, unless a user's rule opens them:\n\n")
	for _, s := range secretsInTrees() {
		fmt.Fprintf(b, "- `%s`\n", s)
	}
}

// docRules writes the rows of a table. Directories that have one answer, as those
// of a compiler cache, are one row.
func docRules(b *strings.Builder, p *Policy, where string) {
	last := ""
	for _, r := range p.FS.Rules {
		what := map[Access]string{
			Read: "read", Read | Exec: "read, execute", Read | Write: "read, write", Read | Write | Exec: "read, write, execute",
		}[r.Access]
		if r.Create {
			what += ", made"
		}
		name, trust := r.Path, ""
		if r.Access&Write != 0 {
			if o := outsideOf(r.Path); o != nil {
				if trust = o.trust; o.own != "" {
					trust += ". `" + o.own + "`"
				}
				if strings.HasSuffix(o.paths[0], "/*") {
					name = path.Dir(r.Path) + "/{0-9,a-f,lock,tmp}"
				}
			}
		}
		if row := fmt.Sprintf("| `%s` | %s%s | %s |\n", name, what, where, trust); row != last {
			b.WriteString(row)
			last = row
		}
	}
}

func docLinks(b *strings.Builder, p *Policy, on string) {
	for _, l := range p.FS.Links {
		fmt.Fprintf(b, "| `$ZSBX_CACHE/%s` | link to `%s`%s | |\n", l.Name, l.To, on)
	}
}
