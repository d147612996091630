package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/zsbx/zsbx/enforce/sandbox/internal/safepath"
)

// makeDirs makes the directories that presets, policies and --create-missing want to
// be there, and reports whether there were any: Landlock can allow only what exists,
// and a tool that can't make its cache fails. What the command line names must be
// made. The rest is left alone where it can't be; the tool says so in its own words.
// Nothing is made by a link that a command or another user may have put there.
func (c *prepared) makeDirs() (made bool, err error) {
	for i := range c.resolved.Create {
		p := &c.resolved.Create[i]
		from := p.Rule.Origin
		mode := uint32(0o777)
		if from.BuiltIn() {
			mode = 0o700
		}
		why := c.planted(p)
		if why == nil {
			why = safepath.MakeDir(p.Path, mode, from.BuiltIn())
		}
		if made = made || why == nil; why == nil || from.BuiltIn() {
			continue
		}
		if strings.HasPrefix(from.Source, "--") {
			err = errors.Join(err, &Error{Code: CodePolicy, Err: fmt.Errorf("%s: %s was not made: %w", from, p.Path, why)})
			continue
		}
		c.warn(Warning{Text: fmt.Sprintf("%s: %s was not made: %v", from, p.Path, why)})
	}
	return made, err
}

// foreignLink is the first of some symbolic links that neither the user nor root
// has made, "" for none.
func foreignLink(links []string) string {
	for _, link := range links {
		st, err := os.Lstat(link)
		if err != nil {
			return link
		}
		if !safepath.OwnedBy(st, 0) && !safepath.OwnedBy(st, os.Geteuid()) {
			return link
		}
	}
	return ""
}
