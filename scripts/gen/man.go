package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Pages are plain man(7): .TH, .SH, .TP, .PP and .EX, which mandoc and groff
// both know and a person can read.

//go:embed sections.man
var sectionsMan string

// sections are what a page has beside what the command says.
func sections(name string) (string, error) {
	t, err := template.New("").Parse(sectionsMan)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.ExecuteTemplate(&b, name, nil)
	return strings.TrimSpace(b.String()), err
}

// pageName is the name of a command's page.
func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage writes the page of one command.
func manPage(c *cobra.Command) ([]byte, error) {
	more, err := sections(c.Name())
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(".\\\" Written by scripts/gen; change the command or scripts/gen/sections.man.\n")
	fmt.Fprintf(&b, ".TH %s 1 \"\" zsbx \"zsbx manual\"\n", roff(strings.ToUpper(pageName(c))))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(pageName(c)), roff(lowerFirst(c.Short)))
	b.WriteString(".SH SYNOPSIS\n")
	use := strings.TrimPrefix(c.Use, c.Name())
	if c.HasAvailableSubCommands() {
		use = "COMMAND"
	}
	fmt.Fprintf(&b, ".B %s\n%s\n", roff(c.CommandPath()), roff(strings.TrimSpace(use)))
	b.WriteString(".SH DESCRIPTION\n")
	paragraphs(&b, c.Long)
	if c.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" {
				fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", roff(pageName(sub)), roff(sub.Short))
			}
		}
	}
	options(&b, c)
	b.WriteString(more + "\n")
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n.EX\n")
		for l := range strings.SplitSeq(c.Example, "\n") {
			b.WriteString(roff(strings.TrimPrefix(l, "  ")) + "\n")
		}
		b.WriteString(".EE\n")
	}
	b.WriteString(".SH SEE ALSO\n")
	b.WriteString(seeAlso(c) + "\n")
	return b.Bytes(), nil
}

// options writes the flags of a command.
func options(b *bytes.Buffer, c *cobra.Command) {
	if !c.Flags().HasAvailableFlags() {
		return
	}
	b.WriteString(".SH OPTIONS\n")
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		b.WriteString(".TP\n")
		if f.Shorthand != "" {
			fmt.Fprintf(b, "\\fB\\-%s\\fR, ", f.Shorthand)
		}
		fmt.Fprintf(b, "\\fB\\-\\-%s\\fR", roff(f.Name))
		if f.NoOptDefVal == "" {
			fmt.Fprintf(b, " \\fI%s\\fR", roff(strings.ToUpper(value)))
		}
		usage = strings.ToUpper(usage[:1]) + usage[1:] + "."
		if f.Value.Type() == "stringArray" {
			usage += " May be given more than once."
		} else if f.DefValue != "" && f.DefValue != "false" {
			usage += " The default is " + f.DefValue + "."
		}
		fmt.Fprintf(b, "\n%s\n", roff(usage))
	})
}

// paragraphs writes text that is split by empty lines.
func paragraphs(b *bytes.Buffer, text string) {
	for i, p := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		b.WriteString(roff(p) + "\n")
	}
}

// seeAlso refers to the other pages.
func seeAlso(c *cobra.Command) string {
	var refs []string
	if c.HasParent() {
		refs = append(refs, ".BR zsbx (1)")
		for _, s := range c.Parent().Commands() {
			if s != c && s.IsAvailableCommand() && s.Name() != "help" {
				refs = append(refs, ".BR "+roff(pageName(s))+" (1)")
			}
		}
	} else {
		refs = append(refs, ".BR landlock (7)", ".BR seccomp (2)", ".BR env (1)", ".BR timeout (1)")
	}
	return strings.Join(refs, ",\n")
}

// roff escapes text: backslashes, hyphens, and the control characters of roff
// at the start of a line.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, `-`, `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }
