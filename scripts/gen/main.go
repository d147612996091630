// Command gen writes the manual pages in man/ and the completion scripts in
// completions/ from zsbx's commands, below the working directory.
package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zsbx/zsbx/cmd"
)

func main() {
	files, err := generate()
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(name, text, 0o644))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func generate() (map[string][]byte, error) {
	root := cmd.Root()
	files := map[string][]byte{}
	all := []*cobra.Command{root}
	for i := 0; i < len(all); i++ {
		all = append(all, all[i].Commands()...)
	}
	for _, c := range all {
		page, err := manPage(c)
		if err != nil {
			return nil, err
		}
		files["man/"+pageName(c)+".1"] = page
	}
	for shell, name := range map[string]string{"bash": "zsbx.bash", "zsh": "_zsbx", "fish": "zsbx.fish"} {
		var b bytes.Buffer
		if err := cmd.Completion(root, shell, &b); err != nil {
			return nil, err
		}
		files["completions/"+name] = b.Bytes()
	}
	return files, nil
}

// Pages are plain man(7): .TH, .SH, .TP, .PP and .EX, which mandoc and groff
// both know and a person can read.

//go:embed sections.man
var sectionsMan string

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage writes the page of one command from the template "page". The template with the
// command's name adds what the command's own texts do not say.
func manPage(c *cobra.Command) ([]byte, error) {
	t := template.New("")
	t.Funcs(template.FuncMap{
		"roff": roff, "name": pageName, "lower": lowerFirst, "upper": strings.ToUpper, "option": option,
		"own": func() (string, error) {
			var b strings.Builder
			err := t.ExecuteTemplate(&b, c.Name(), nil)
			return strings.TrimSpace(b.String()), err
		},
		"synopsis": func() string {
			if !c.HasParent() {
				return "COMMAND"
			}
			return strings.TrimSpace(strings.TrimPrefix(c.Use, c.Name()))
		},
		"paragraphs": func(s string) string {
			return strings.ReplaceAll(roff(strings.TrimSpace(s)), "\n\n", "\n.PP\n")
		},
		"example": func(s string) string { return roff(strings.ReplaceAll("\n"+s, "\n  ", "\n")[1:]) },
		"flags": func() (all []*pflag.Flag) {
			c.Flags().VisitAll(func(f *pflag.Flag) { all = append(all, f) })
			return all
		},
	})
	if _, err := t.Parse(sectionsMan); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err := t.ExecuteTemplate(&b, "page", c)
	return b.Bytes(), err
}

func option(f *pflag.Flag) string {
	value, usage := pflag.UnquoteUsage(f)
	short := ""
	if f.Shorthand != "" {
		short = "\\fB\\-" + f.Shorthand + "\\fR, "
	}
	if f.NoOptDefVal == "" {
		value = " \\fI" + roff(strings.ToUpper(value)) + "\\fR"
	} else {
		value = ""
	}
	if !strings.HasPrefix(usage, "macOS") {
		usage = strings.ToUpper(usage[:1]) + usage[1:]
	}
	usage += "."
	if f.Value.Type() == "stringArray" {
		usage += " May be given more than once."
	} else if f.DefValue != "" && f.DefValue != "false" {
		usage += " The default is " + f.DefValue + "."
	}
	return fmt.Sprintf("%s\\fB\\-\\-%s\\fR%s\n%s", short, roff(f.Name), value, roff(usage))
}

// roff escapes text: backslashes, hyphens, and the control characters of roff
// at the start of a line.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, `-`, `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace("\n" + s)
	return s[1:]
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }
