package enforce

import (
	"errors"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/enforce/deny"
	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/enforce/protect"
	"github.com/zsbx/zsbx/internal/enforce/seatbelt"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// planMacOS fills in the plan for macOS. Seatbelt keeps all promises or none.
func (p *Plan) planMacOS(h *host.Host, opts Options) {
	const none = "it needs a namespace, which only Linux has"
	const noTry = "it needs an overlay, which only Linux has"
	rep := &report{p: p, opts: opts, mounts: mounts.Result{Home: none, Pids: none, Try: noTry}}
	rep.everywhere()
	p.planProxy(h, opts)
	if p.hosts == nil {
		rep.hosts(p.noHosts)
	}
	if !p.Caps.Seatbelt {
		rep.core(GapFiles, onlyAllowed, "Seatbelt is needed: "+orUnknown(p.Caps.SeatbeltReason), policy.Origin{})
		return
	}
	p.Seatbelt = &seatbelt.Options{Log: opts.Explain}
	prot := protect.Find(p.Policy, h, opts.protectRequest(func() mounts.Table { return mounts.Table{} }))
	rep.zsbxFiles(prot.ZsbxFacts)
	rep.facts(prot.Facts)
	p.audit = prot.Audit
	p.audit.Trees = mounts.WritableTrees(p.Policy.Paths)
	p.audit.Paths = nil
	p.Seatbelt.Protect = slices.Clone(prot.ZsbxFiles)
	for _, w := range prot.Paths {
		if slices.Contains(p.Seatbelt.Protect, w.Path) {
			continue
		}
		unmade := w.Kind == protect.Any || w.Kind == protect.Missing
		if w.Kind == protect.Protected || unmade && p.protectUnmade(w.Path) {
			p.Seatbelt.Protect = append(p.Seatbelt.Protect, w.Path)
		}
		if w.Kind != protect.Protected { // a missing file can appear with a directory that is moved there
			p.audit.Paths = append(p.audit.Paths, w)
		}
	}
	if h != nil {
		p.Seatbelt.Hide = protect.Hideable(p.Policy, h, opts.Hide)
		for _, path := range p.Seatbelt.Protect {
			if h.Look(path).Presence == host.Absent {
				p.Seatbelt.Unmade = append(p.Seatbelt.Unmade, path)
			}
		}
	}
	p.matchGlobs(rep, h)
	text, err := seatbelt.Profile(p.Policy, *p.Seatbelt)
	if err != nil {
		p.Seatbelt = nil
		p.hosts = nil
		pe := &seatbelt.ProfileError{}
		errors.As(err, &pe)
		rep.core(GapFiles, onlyAllowed, err.Error(), pe.Origin)
		return
	}
	p.profileRules = strings.Count(text, "\n(")
}

// matchGlobs finds what the denials with wildcards match in writable trees.
func (p *Plan) matchGlobs(rep *report, h *host.Host) {
	globs := slices.DeleteFunc(slices.Clone(p.Policy.Deny), func(d resolve.DenyPath) bool { return !d.Glob })
	if len(globs) == 0 || h == nil {
		return
	}
	writable := func(t deny.Tree) bool { return t.Access&policy.Write != 0 && t.Mode.IsDir() }
	trees := slices.DeleteFunc(treesOf(p.Policy), func(t deny.Tree) bool { return !writable(t) })
	named, err := deny.Named(h, trees, globs)
	for _, m := range named {
		if p.Policy.Allowed(m.Path, policy.Read).Deny != nil {
			p.Seatbelt.Matched = append(p.Seatbelt.Matched, m.Path)
		} else { // a link's target, or a directory that may contain denied files
			d := resolve.DenyPath{Pattern: m.Path, Deny: policy.Named{Value: m.Path, Origin: m.Origin}}
			p.Seatbelt.Deny = append(p.Seatbelt.Deny, d)
		}
	}
	if err == nil {
		return
	}
	const why = "a match could be moved with its directory, and not all matches can be found: "
	for _, d := range globs {
		rep.denied(d, why+err.Error(), "")
	}
}

// protectUnmade reports whether the command can't make a protected file that is missing. A profile
// could deny all missing files. But a project's settings files may be made, since checking out a
// branch or setting up a project does that; the user gets a report. What git, the user's shell
// and zsbx itself run or trust can't be made.
func (p *Plan) protectUnmade(name string) bool {
	if strings.Contains(name, "/.git/") {
		return true
	}
	for _, home := range []string{p.Policy.Home, p.Policy.RealHome} {
		rest, ok := strings.CutPrefix(name, home+"/")
		if ok && home != "" && slices.Contains(resolve.StartupFiles("macos"), rest) {
			return true
		}
	}
	return false
}

// ForSession sets the plan's session of package track, before Confine. On macOS the profile
// then has the session's fingerprint, by which its processes are found. On Linux it changes
// nothing.
func (p *Plan) ForSession(id string) {
	if p.Seatbelt != nil {
		p.Seatbelt.Session = id
	}
}

// Confines reports whether the plan restricts files, signals and sockets at all.
func (p *Plan) Confines() bool { return p.Landlock != nil || p.Seatbelt != nil }
