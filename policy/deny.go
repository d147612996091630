package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/glob"
)

// Denials. A pattern without wildcards is a path, which need not exist yet: a
// relative one is taken from the working directory. A pattern with wildcards
// is anchored in the same way: "**/.env" is any .env below the working
// directory, "~/**/id_*" any below the home directory. A backslash makes the
// next character an ordinary one.

// checkDeny returns what is wrong with a denial as it is written. A denial that can never
// match is an error: its author believes that something is denied.
func checkDeny(s string) error {
	if err := checkPath(s); err != nil {
		return err
	}
	if s[0] == '!' {
		return fmt.Errorf("denial %q: denials cannot be taken back (a file of that name is %q)", s, `\`+s)
	}
	// ${NAME} has braces
	plain, err := replaceVariables(s, func(v variable) (string, error) { return "$" + v.name, nil })
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(plain, "/") {
		if _, err := glob.ParseName(name); err != nil {
			return fmt.Errorf("denial %w", err)
		}
	}
	return nil
}

// AnchorDenials makes the relative denials of a file in dir apply below dir as
// well as below the working directory: a project that denies "keys" means its
// own, wherever in it a command is run. dir is absolute, and the working
// directory is in it.
func (p *Policy) AnchorDenials(dir string) {
	for _, p := range p.parts() {
		for i, d := range p.FS.Deny {
			first, _, _ := strings.Cut(d.Value, "/")
			named := strings.HasPrefix(first, "$") && !strings.HasPrefix(first, "$$")
			if first == "" || first == "~" || first == "cwd" || named {
				continue
			}
			d.Value = strings.TrimSuffix(glob.QuoteMeta(literal(dir)), "/") + "/" + d.Value
			if first == "**" { // covers the working directory, too
				p.FS.Deny[i] = d
			} else {
				p.FS.Deny = append(p.FS.Deny, d)
			}
		}
	}
}

func (rs *resolver) denials(deny []Named) {
	rs.r.Deny = slices.Grow(rs.r.Deny, len(deny))
	for _, d := range deny {
		if dp, err := rs.deny(d); err != nil {
			rs.fail(d.Origin, expandCode(err), "", err.Error())
		} else {
			rs.r.Deny = append(rs.r.Deny, dp)
		}
	}
}

func (rs *resolver) deny(d Named) (DenyPath, error) {
	if err := checkDeny(d.Value); err != nil {
		return DenyPath{}, err
	}
	whole, err := rs.host.whole(d.Value, glob.QuoteMeta) // what "~" and variables stand for is taken literally
	if err != nil {
		return DenyPath{}, err
	}
	if !strings.HasPrefix(whole, "/") {
		whole = glob.QuoteMeta(rs.host.Dir) + "/" + whole
	}
	fixed, rest := glob.Split(whole)
	if strings.Contains(rest+"/", "/../") {
		return DenyPath{}, fmt.Errorf(`denial %q can never match: ".." can't follow a wildcard`, d.Value)
	}
	abs := path.Clean(fixed)
	pl, err := rs.w.spelled(abs)
	if errors.Is(err, fs.ErrPermission) {
		// The command can't look there either: deny the path as it is written.
		pl.path = abs
		err = nil
	}
	if err != nil {
		return DenyPath{}, fmt.Errorf("%s: %w", d.Value, err)
	}
	if pl.unread != "" { // the name may be spelled in another way, so the whole directory is denied
		pl.path = pl.unread
		rest = ""
	}
	out := DenyPath{Pattern: pl.path, Deny: d, Glob: rest != ""}
	if out.Glob {
		out.Pattern = path.Join(glob.QuoteMeta(pl.path), rest)
		_, err = glob.Parse(out.Pattern)
	}
	if slices.Contains([]string{"/", "/*", "/**"}, out.Pattern) {
		return DenyPath{}, fmt.Errorf("denying %s leaves nothing to run", out.Pattern)
	}
	return out, err
}
