package cmd

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/policy"
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

// table collects rows and writes them in columns.
type table struct{ rows [][]string }

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// printTable prints a table alone.
func (a *app) printTable(t *table) error {
	var b strings.Builder
	t.write(&b)
	return a.printText(b.String())
}

// write writes the rows, indented, the columns as wide as they need to be; a
// very long cell moves only the rest of its own row.
func (t *table) write(b *strings.Builder) {
	const widest = 60
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
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// planText is the plan for people.
func planText(plan *enforce.Plan, files []string) string {
	var b strings.Builder
	r := plan.Policy
	section := func(title string, t *table) {
		if len(t.rows) > 0 {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(title + "\n")
			t.write(&b)
		}
	}
	section("policy files, the weakest first", pathsTable(files))
	section("allowed paths", pathTable(r))
	section("denied, wherever they lie", denyTable(r))
	masked, protected := plan.Covered()
	section("hidden from the command", pathsTable(masked))
	section("protected: readable, never changed", pathsTable(protected))
	section("left out: nothing there on this machine", skipTable(r))
	section("network", netTable(r))
	section("environment", envTable(r))
	section("limits", limitTable(r))
	section("enforced by", layerTable(plan))
	section("not enforced here", gapTable(plan))
	return b.String()
}

func pathTable(r *policy.Resolved) *table {
	t := &table{}
	for _, p := range r.Paths {
		from := p.Rule.Origin.String()
		if p.Rule.Path != p.Path {
			from += "  " + p.Rule.Path
		}
		t.row(accessName(p.Access), p.Path, from)
	}
	if len(t.rows) == 0 {
		t.row("none")
	}
	return t
}

// accessName names an access with the flag that gives it.
func accessName(a policy.Access) string { return strings.ReplaceAll(a.String(), "_", "-") }

func denyTable(r *policy.Resolved) *table {
	t := &table{}
	for _, d := range r.Deny {
		t.row("deny", d.Pattern, d.Deny.Origin.String())
	}
	return t
}

func pathsTable(paths []string) *table {
	t := &table{}
	for _, p := range paths {
		t.row(p)
	}
	return t
}

func skipTable(r *policy.Resolved) *table {
	t := &table{}
	for _, s := range r.Skipped {
		t.row(accessName(s.Rule.Access), s.Rule.Path, s.Rule.Origin.String(), s.Reason)
	}
	return t
}

func netTable(r *policy.Resolved) *table {
	t := &table{}
	n := r.Net
	from := n.From.String()
	switch n.Mode {
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
	return t
}

func envTable(r *policy.Resolved) *table {
	t := &table{}
	t.row("passed", fmt.Sprint(len(r.Env)), strings.Join(envNames(r), " "))
	t.row("left out", fmt.Sprint(len(r.EnvDrop)), strings.Join(r.EnvDrop, " "))
	return t
}

func limitTable(r *policy.Resolved) *table {
	t := &table{}
	if l := r.Limits; l.Timeout > 0 {
		t.row("time", l.Timeout.String(), l.TimeoutFrom.String())
	}
	if l := r.Limits; l.MaxOutput > 0 {
		t.row("output", policy.FormatSize(l.MaxOutput), l.MaxOutputFrom.String())
	}
	if l := r.Limits; l.Memory > 0 {
		t.row("memory", policy.FormatSize(l.Memory), l.MemoryFrom.String())
	}
	if l := r.Limits; l.Pids > 0 {
		t.row("pids", fmt.Sprint(l.Pids), l.PidsFrom.String())
	}
	if l := r.Limits; l.CPU > 0 {
		t.row("cpu", policy.CPUText(l.CPU), l.CPUFrom.String())
	}
	for _, n := range r.Guard.Lists {
		t.row("guard", n.Value, n.Origin.String())
	}
	return t
}

func layerTable(plan *enforce.Plan) *table {
	t := &table{}
	for _, l := range plan.Layers {
		t.row(l.Name, l.Detail)
	}
	return t
}

func gapTable(plan *enforce.Plan) *table {
	t := &table{}
	for _, g := range plan.Gaps {
		t.row(g.Name, string(g.Kind), g.Promise+": "+g.Why)
		if g.Hint != "" {
			t.row("", "", "  "+g.Hint)
		}
	}
	return t
}
