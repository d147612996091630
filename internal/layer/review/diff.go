package review

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/terminal"
	"github.com/zsbx/zsbx/internal/units"
)

// maxText is how many bytes of a file are compared by lines. Bigger files are told by their sizes.
const maxText = 1 << 20

// Diff writes the changes as a unified difference that patch(1) takes with -p1. What is no text is one line
// that patch(1) passes over.
func (r *Review) Diff(w io.Writer) error {
	for i := range r.Changes {
		if _, err := w.Write(r.difference(&r.Changes[i])); err != nil {
			return err
		}
	}
	return nil
}

// difference returns what is shown of one change.
func (r *Review) difference(c *layer.Change) []byte {
	var b bytes.Buffer
	t := r.text(c)
	if what := r.what(c, &t); what != "" {
		fmt.Fprintf(&b, "%s %s: %s\n", sign(c.Op), r.name(c.Tree, c.Path), what)
	}
	lines := t.lines()
	if len(lines) == 0 {
		return b.Bytes()
	}
	fmt.Fprintf(&b, "--- %s\n", r.side("a/", c, c.Op == layer.Add || !wasRegular(c)))
	fmt.Fprintf(&b, "+++ %s\n", r.side("b/", c, c.Op == layer.Remove || !c.Type.IsRegular()))
	for _, l := range lines {
		b.WriteString(terminal.Printable(l))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// side names a side of a difference, from the top of the only tree, as git does. patch(1) reads a name with spaces up
// to a tab.
func (r *Review) side(prefix string, c *layer.Change, none bool) string {
	if none {
		return "/dev/null"
	}
	name := c.Path
	if len(r.trees) > 1 && r.trees[c.Tree] != r.host.Dir {
		name = strings.TrimPrefix(r.Path(c), "/")
	}
	name = prefix + printable(name)
	if strings.Contains(name, " ") {
		name += "\t"
	}
	return name
}

// texts are both sides of a change.
type texts struct {
	was, is []byte
	why     string // they are not compared by lines
}

// text reads both sides of a change. A side that is no regular file is empty.
func (r *Review) text(c *layer.Change) texts {
	var t texts
	for _, old := range []bool{true, false} {
		if old && !wasRegular(c) || !old && (c.Op == layer.Remove || !c.Type.IsRegular()) {
			continue
		}
		text, err := r.files.Text(c.Tree, c.Path, old)
		if err != nil {
			return texts{why: "can't be read: " + printable(files.Plain(err).Error())}
		}
		if len(text) > maxText {
			return texts{why: "too big to be compared by lines"}
		}
		if bytes.IndexByte(text, 0) >= 0 {
			return texts{why: "binary"}
		}
		if old {
			t.was = text
		} else {
			t.is = text
		}
	}
	return t
}

// wasRegular reports whether a change is of something that was a regular file.
func wasRegular(c *layer.Change) bool {
	return c.Op != layer.Add && c.Was != nil && c.Was.Mode.IsRegular()
}

// lines returns the hunks of the difference, line by line.
func (t *texts) lines() []string {
	if t.why != "" {
		return nil
	}
	out := string(diff.Diff("", t.was, "", t.is))
	_, hunks, _ := strings.Cut(out, "@@ ") // after three lines with names
	if hunks == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix("@@ "+hunks, "\n"), "\n")
}

// counts counts the lines that are added and removed.
func (t *texts) counts() (added, removed int) {
	for _, l := range t.lines() {
		switch l[0] {
		case '+':
			added++
		case '-':
			removed++
		}
	}
	return added, removed
}

// what says what a difference by lines does not show.
func (r *Review) what(c *layer.Change, t *texts) string {
	var all []string
	add := func(is bool, text string) {
		if is {
			all = append(all, text)
		}
	}
	now := mainMode(c)
	add(c.Op == layer.Remove, "removed "+kind(now))
	add(c.Op == layer.Add, "new "+kind(now))
	add(c.Op == layer.Add && now&fs.ModeSymlink == 0, "mode "+mode(now))
	if c.Op == layer.Modify && c.Was != nil {
		add(c.Was.Mode.Type() != now.Type(), kind(now)+" in place of a "+kind(c.Was.Mode))
		add(c.Was.Mode.Type() == now.Type() && c.Was.Mode != now, "mode "+mode(now)+", was "+mode(c.Was.Mode))
	}
	add(c.Shares, "default ACL")
	if c.Op != layer.Remove && now&fs.ModeSymlink != 0 {
		to, err := r.files.Link(c.Tree, c.Path, false)
		if err != nil {
			to = files.Plain(err).Error()
		}
		add(true, "to "+printable(to))
	}
	add(t.why != "", t.why+sizes(c))
	add(c.Refused != "", "never applied: "+printable(c.Refused))
	return strings.Join(all, ", ")
}

// sizes writes how big both sides of a change are.
func sizes(c *layer.Change) string {
	switch {
	case c.Op == layer.Remove:
		return ", " + units.Short(wasSize(c))
	case c.Was == nil:
		return ", " + units.Short(c.Size)
	}
	return ", " + units.Short(c.Size) + ", was " + units.Short(wasSize(c))
}

// mode writes permissions as chmod(1) takes them.
func mode(m fs.FileMode) string {
	bits := uint32(m.Perm())
	for i, b := range []fs.FileMode{fs.ModeSticky, fs.ModeSetgid, fs.ModeSetuid} {
		if m&b != 0 {
			bits |= 0o1000 << i
		}
	}
	return fmt.Sprintf("%04o", bits)
}

// sign is how an operation is shown.
func sign(op layer.Op) string {
	switch op {
	case layer.Add:
		return "+"
	case layer.Remove:
		return "-"
	}
	return "~"
}
