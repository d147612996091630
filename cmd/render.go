package cmd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/zsbx/zsbx/internal/compose"
	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/object"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/terminal"
	"github.com/zsbx/zsbx/internal/units"
)

// printPlan prints what will be enforced in one of the formats, and the policy files
// behind it.
func (a *app) printPlan(c *compose.Composed, opts supervise.Options, argv []string, format string) error {
	plan, err := a.plan(c, opts, argv)
	if err != nil {
		return err
	}
	switch format {
	case "toml":
		return writeErr(plan.Policy.Policy().EncodeTOML(a.stdout))
	case "landlock":
		return writeErr(plan.WriteLandlock(a.stdout))
	case "sbpl":
		text, err := enforce.SeatbeltProfile(plan.Policy, *cmp.Or(plan.Seatbelt, &enforce.SeatbeltOptions{}))
		if err != nil {
			return coded(supervise.CodePolicy, err)
		}
		return a.printText(text)
	}
	return a.show(planJSON(plan, c.Files), planTable(plan, c.Files))
}

func (a *app) printText(s string) error {
	_, err := io.WriteString(a.stdout, s)
	return writeErr(err)
}

// writeJSON writes v as JSON, on one line if indent is empty.
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

func writeErr(err error) error {
	if err == nil {
		return nil
	}
	return refusal(supervise.CodeFailed, "", "writing to stdout: %w", files.Plain(err))
}

// table is text in columns and sections. A section without rows is left out.
type table struct {
	b     strings.Builder
	title string // of the section, until it has a row
}

func (t *table) section(title string) { t.title = title }

func (t *table) row(cells ...string) {
	if t.title != "" {
		if t.b.Len() > 0 {
			t.line("")
		}
		t.line("%s", t.title)
		t.title = ""
	}
	t.line("  %s", strings.Join(each(cells, cell), "\t"))
}

// cell escapes a text so that it stays in its column.
func cell(s string) string { return strings.ReplaceAll(terminal.Printable(s), "\t", `\t`) }

// list is a section with a row for each text.
func (t *table) list(title string, texts []string) {
	t.section(title)
	for _, text := range texts {
		t.row(text)
	}
}

// line writes a line that is no row.
func (t *table) line(format string, args ...any) {
	fmt.Fprintf(&t.b, format+"\n", args...)
}

// String returns the text, with columns as wide as they need to be.
func (t *table) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = io.WriteString(w, t.b.String()) // memory can't fail
	_ = w.Flush()
	return b.String()
}

// show prints the table, or v as JSON if that is asked for.
func (a *app) show(v any, t *table) error {
	if a.say.json {
		return writeErr(writeJSON(a.stdout, v, "  "))
	}
	return a.printText(t.String())
}

func planTable(plan *enforce.Plan, files []string) *table {
	t := &table{}
	t.list("policy files, the weakest first", files)
	t.paths(plan)
	t.network(&plan.Policy.Net, plan.Policy.OS)
	t.section("environment")
	t.row("passed", fmt.Sprint(len(plan.Env)), strings.Join(envNames(plan), " "))
	t.row("left out", fmt.Sprint(len(plan.Policy.EnvDrop)), strings.Join(plan.Policy.EnvDrop, " "))
	t.limits(plan.Policy)
	t.enforced(plan)
	return t
}

// paths adds the paths that are allowed, denied, hidden and protected, and the rules for others.
func (t *table) paths(plan *enforce.Plan) {
	r := plan.Policy
	t.section("allowed paths")
	for _, p := range r.Paths {
		from := p.Rule.Origin.String()
		if p.Rule.Path != p.Path {
			from += "  " + p.Rule.Path
		}
		t.row(p.Access.String(), p.Path, from)
	}
	if len(r.Paths) == 0 {
		t.row("none")
	}
	t.section("denied, wherever they are")
	for _, d := range r.Deny {
		t.row("deny", d.Pattern, d.Deny.Origin.String())
	}
	covered := plan.Covered()
	t.list("hidden from the command", covered["mask"])
	t.list("protected: readable, never changed", covered["protect"])
	t.section("left out: nothing there on this machine")
	for _, s := range r.Skipped {
		t.row(s.Rule.Access.String(), s.Rule.Path, s.Rule.Origin.String(), s.Reason)
	}
}

// network adds how far the network is open on a system.
func (t *table) network(n *resolve.ResolvedNet, os string) {
	t.section("network")
	means := map[resolve.NetMode]string{
		resolve.NetOpen:  "all of it",
		resolve.NetPorts: "only the TCP ports below",
		resolve.NetHosts: "only the hosts below",
	}
	what := means[n.Mode]
	if n.Mode == resolve.NetHosts && len(n.Hosts.Allowed) == 0 {
		what = "only the session's own servers"
		if os == "macos" {
			what = "none"
		}
	}
	t.row(string(n.Mode), what, n.From.String())
	t.hosts(&n.Hosts)
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

// hosts adds the hosts that may be reached, and those that may not.
func (t *table) hosts(h *resolve.Hosts) {
	for i := range h.Allowed {
		a := &h.Allowed[i]
		t.row("host", a.Rule.String()+marks(a), a.Origin.String())
	}
	for i := range h.Denied {
		d := &h.Denied[i]
		t.row("deny", d.Rule.String(), d.Origin.String())
	}
	if h.NXDomain {
		t.row("refused", "names do not exist")
	}
}

// marks returns in words what a rule says beside its text, in brackets, or "".
func marks(h *resolve.Host) string {
	var all []string
	if h.Private {
		all = append(all, "private addresses, too")
	}
	if h.ECH {
		all = append(all, "ECH")
	}
	if h.Form == rule.All {
		all = append(all, "every public name: names that are looked up can carry data out")
	}
	if all == nil {
		return ""
	}
	return " (" + strings.Join(all, ", ") + ")"
}

// limits adds the limits and the lists of the guard.
func (t *table) limits(r *resolve.Resolved) {
	t.section("limits")
	for _, l := range r.Limits.All() {
		switch l.Name {
		case "max_output":
			l.Value = units.FormatSize(r.Limits.MaxOutput.Value)
		case "memory":
			l.Value = units.FormatSize(r.Limits.Memory.Value)
		}
		t.row(l.Name, l.Value, l.Origin.String())
	}
	for _, g := range r.Guard.Lists {
		t.row("guard", g.Value, g.Origin.String())
	}
}

// enforced adds what enforces the policy, and what is not enforced.
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
