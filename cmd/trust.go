package cmd

import (
	"errors"
	"fmt"

	"github.com/zsbx/zsbx/internal/compose"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/terminal"
)

// trustShow is the value of --trust when it is given as a switch.
const trustShow = "true"

// trustProject shows what the project's policies ask for, and records that one
// of them may be used, if its content has the hash that was given. What is
// shown, hashed and recorded are the same bytes. Without a hash the status is 1 if a
// policy needs trust and does not have it.
func (o *checkFlags) trustProject(a *app) error {
	h, err := o.thisHost()
	if err != nil {
		return err
	}
	all, err := compose.Projects(&h)
	if err != nil {
		return o.composeErr(err)
	}
	if len(all) == 0 {
		return refusal(supervise.CodePolicy, "",
			"there is no project policy: no %s in this directory, or above it in its repository", resolve.ProjectFile)
	}
	t := &table{}
	hash := o.trust
	var reports []any
	var hints []string
	found := hash == trustShow
	for _, p := range all {
		if hash == p.SHA256() {
			if err := p.Trust(); err != nil {
				return err
			}
			found = true
		}
		trusted := p.Trusted()
		if len(p.Asks) > 0 && !trusted {
			hints = append(hints, o.trustCommand()+"="+p.SHA256())
		}
		t.project(p, trusted)
		reports = append(reports, projectJSON(p, trusted))
	}
	if !found {
		return refusal(codeUntrusted, o.trustCommand(),
			"no project policy here has that SHA-256; it may have changed since it was shown")
	}
	err = a.show(reports, t)
	a.say.hints(hints) // never for what was not shown
	if hash == trustShow && hints != nil {
		err = errors.Join(err, status(exitNo))
	}
	return err
}

// project adds what a project's policy asks for, and whether the user trusts it.
func (t *table) project(p *compose.Project, trusted bool) {
	what := "trusted; it asks for"
	switch {
	case len(p.Asks) == 0:
		what = "only takes away, which needs no trust"
	case !trusted:
		what = "not trusted; it asks for"
	}
	t.line("%s: %s", terminal.Printable(p.File), what)
	for _, w := range p.Asks {
		t.row(fmt.Sprintf("%d:%d", w.Origin.Line, w.Origin.Column), w.Key, w.Value)
	}
	t.row("sha256", p.SHA256())
}

func projectJSON(p *compose.Project, trusted bool) map[string]any {
	var asks []any
	for _, w := range p.Asks {
		asks = append(asks, map[string]any{
			"key":    w.Key,
			"value":  w.Value,
			"line":   w.Origin.Line,
			"column": w.Origin.Column,
		})
	}
	return map[string]any{
		"path":    p.File,
		"sha256":  p.SHA256(),
		"trusted": trusted,
		"asks":    asks,
	}
}
