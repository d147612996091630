package policy

import "strconv"

// What a Named of Private may say.
const (
	wordPrivate = "private"
	wordShared  = "shared"
)

// Private says what of the machine the command does not share with the user's
// other programs. An empty Value says nothing, which is "shared".
type Private struct {
	// Home, [fs] home, is the home directory: what the policy allows of it stays,
	// and the rest is empty, writable, and gone when the session is.
	Home Named
	// Pids, [process] pids, are process ids: the command sees the session's own
	// processes and no others (pid_namespaces(7)).
	Pids Named
}

// choice is one of a Private, as policies have it.
type choice struct {
	table, key string
	value      *Named
}

func (p *Private) all() [2]choice {
	return [2]choice{{"fs", "home", &p.Home}, {"process", "pids", &p.Pids}}
}

// Is reports whether a Named of a Private asks for something of the command's own.
func (n *Named) Is() bool { return n.Value == wordPrivate }

// put lays what o says over p; clear takes that away.
func (p *Private) put(o *Private, clear bool) {
	to := p.all()
	for i, from := range o.all() {
		switch {
		case from.value.Value == "":
		case clear:
			*to[i].value = Named{}
		default:
			*to[i].value = *from.value
		}
	}
}

// private reads one of the keys.
func (c *checker) private(n *node, what string, to *Named) {
	if !c.is(n, stringNode, what) {
		return
	}
	if n.text != wordPrivate && n.text != wordShared {
		c.fail(n.off, CodeValue, "%s is %s: it must be %q or %q", what, strconv.Quote(n.text), wordPrivate, wordShared)
		return
	}
	*to = Named{Value: n.text, Origin: c.loc.at(n.off)}
}

// process reads the table of that name.
func (c *checker) process(n *node, table string, p *Private) {
	if !c.is(n, tableNode, table) {
		return
	}
	for i := range n.fields {
		if f := &n.fields[i]; f.key == "pids" {
			c.private(f.val, table+".pids", &p.Pids)
		} else {
			c.unknown(f, table, "pids")
		}
	}
}

// widens says what is shared that was private.
func (p *Private) widens(base *Private, w *widening) {
	before := base.all()
	for i, ch := range p.all() {
		if ch.value.Value == wordShared && before[i].value.Is() {
			w.add(ch.table+"."+ch.key, wordShared, ch.value.Origin)
		}
	}
}
