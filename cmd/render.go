package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/internal/object"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/units"
)

// printPlan prints what will be enforced in one of the formats, and of which
// files it comes.
func (a *app) printPlan(c *composed, plan *enforce.Plan, format string) error {
	switch format {
	case "json":
		return a.printJSON(planJSON(plan, c.Files))
	case "toml":
		return writeErr(plan.Policy.Policy().EncodeTOML(a.stdout))
	case "landlock":
		return writeErr(plan.WriteLandlock(a.stdout))
	case "sbpl":
		return a.printSBPL(plan)
	}
	return a.printText(planText(plan, c.Files))
}

func (a *app) printText(s string) error {
	_, err := io.WriteString(a.stdout, s)
	return writeErr(err)
}

// printJSON prints v as indented JSON.
func (a *app) printJSON(v any) error {
	return writeErr(writeJSON(a.stdout, v, "  "))
}

// writeJSON writes v as JSON, on one line without an indent.
func writeJSON(w io.Writer, v any, indent string) error {
	text := object.Of(v)
	if indent != "" {
		var b bytes.Buffer
		if err := json.Indent(&b, text, "", indent); err != nil {
			return err
		}
		text = b.Bytes()
	}
	_, err := w.Write(append(text, '\n'))
	return err
}

// writeErr says where writing failed.
func writeErr(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("writing to stdout: %w", withoutPath(err))
}

// table is text in columns, in sections: one without rows is left out.
type table struct {
	b     strings.Builder
	title string
	rows  [][]string
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// section begins a new one.
func (t *table) section(title string) {
	t.flush()
	t.title = title
}

// line writes a line that is no row.
func (t *table) line(format string, args ...any) {
	t.flush()
	fmt.Fprintf(&t.b, format+"\n", args...)
}

func (a *app) printTable(t *table) error { return a.printText(t.String()) }

// String is all of the text.
func (t *table) String() string {
	t.flush()
	return t.b.String()
}

// flush writes the rows, indented, the columns as wide as they need to be; a
// very long cell moves only the rest of its own row.
func (t *table) flush() {
	const widest = 60
	if len(t.rows) > 0 && t.title != "" {
		if t.b.Len() > 0 {
			t.b.WriteByte('\n')
		}
		t.b.WriteString(t.title + "\n")
	}
	var width []int
	for _, r := range t.rows {
		for i, c := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			if n := utf8.RuneCountInString(c); n <= widest {
				width[i] = max(width[i], n)
			}
		}
	}
	for _, r := range t.rows {
		line := " "
		for i, c := range r {
			c = printable(c)
			line += " " + c
			if i < len(r)-1 {
				line += strings.Repeat(" ", 1+max(0, width[i]-utf8.RuneCountInString(c)))
			}
		}
		t.b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	t.rows, t.title = nil, ""
}

// planText is the plan for people.
func planText(plan *enforce.Plan, files []string) string {
	t, r := &table{}, plan.Policy
	list := func(title string, paths []string) {
		t.section(title)
		for _, p := range paths {
			t.row(p)
		}
	}
	list("policy files, the weakest first", files)
	t.section("allowed paths")
	for _, p := range r.Paths {
		from := p.Rule.Origin.String()
		if p.Rule.Path != p.Path {
			from += "  " + p.Rule.Path
		}
		t.row(accessName(p.Access), p.Path, from)
	}
	if len(r.Paths) == 0 {
		t.row("none")
	}
	t.section("denied, wherever they lie")
	for _, d := range r.Deny {
		t.row("deny", d.Pattern, d.Deny.Origin.String())
	}
	masked, protected := plan.Covered()
	list("hidden from the command", masked)
	list("protected: readable, never changed", protected)
	t.section("left out: nothing there on this machine")
	for _, s := range r.Skipped {
		t.row(accessName(s.Rule.Access), s.Rule.Path, s.Rule.Origin.String(), s.Reason)
	}
	t.net(&r.Net)
	t.section("environment")
	t.row("passed", fmt.Sprint(len(r.Env)), strings.Join(envNames(r), " "))
	t.row("left out", fmt.Sprint(len(r.EnvDrop)), strings.Join(r.EnvDrop, " "))
	t.limits(r)
	t.enforced(plan)
	return t.String()
}

// accessName names an access with the flag that gives it.
func accessName(a policy.Access) string { return strings.ReplaceAll(a.String(), "_", "-") }

func (t *table) net(n *policy.ResolvedNet) {
	t.section("network")
	switch from := n.From.String(); n.Mode {
	case policy.NetOpen:
		t.row("open", "all of it", from)
	case policy.NetNone:
		t.row("none", "", from)
	case policy.NetPorts:
		t.row("ports", "only the TCP ports below", from)
	}
	for _, p := range n.ConnectTCP {
		t.row("connect", fmt.Sprintf("tcp %d", p.Number), p.Origin.String())
	}
	for _, p := range n.BindTCP {
		t.row("listen", fmt.Sprintf("tcp %d", p.Number), p.Origin.String())
	}
	for _, p := range n.Unix {
		t.row("connect", p.Path, p.Rule.Origin.String())
	}
}

func (t *table) limits(r *policy.Resolved) {
	t.section("limits")
	for _, l := range r.Limits.All() {
		if l.Said() && *l.Value > 0 {
			text := l.Text()
			if l.Key == "max_output" || l.Key == "memory" {
				text = units.FormatSize(*l.Value)
			}
			t.row(strings.TrimSuffix(strings.TrimPrefix(l.Key, "max_"), "out"), text, l.From.String())
		}
	}
	for _, n := range r.Guard.Lists {
		t.row("guard", n.Value, n.Origin.String())
	}
}

// enforced tells what holds the policy, and what does not.
func (t *table) enforced(plan *enforce.Plan) {
	t.section("enforced by")
	for _, l := range plan.Layers() {
		t.row(l.Name, l.Detail)
	}
	t.section("not enforced here")
	for _, g := range plan.Gaps {
		t.row(g.Name, string(g.Kind), g.Promise+": "+g.Why)
		if g.Hint != "" {
			t.row("", "", "  "+g.Hint)
		}
	}
}
