package learn

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
)

// Hint is what would allow something. The zero value is none.
type Hint struct {
	Flags  string         // of run, as a shell takes them
	Policy *policy.Policy // nil where no policy file can say it
}

// Hint is the proposal in words to type. Paths are written from the working directory
// and the home directory of r.
func (q *Proposal) Hint(r *policy.Resolved) Hint {
	switch {
	case q.Preset != "":
		return NewHint("presets", q.Preset, false)
	case q.Path == "":
		return NewHint(q.Key, strconv.Itoa(int(q.Port)), false)
	}
	return NewHint(cmp.Or(q.Key, "fs."+(q.Access|policy.Read).String()), r.Short(q.Path), q.Dir && q.Change)
}

// NewHint is for a value of a key of policy files, such as "fs.rw". With create it is a
// directory that is missing, and is to be made.
func NewHint(key, value string, create bool) Hint {
	h := Hint{Policy: &policy.Policy{}}
	_ = h.Policy.Put(key, policy.Named{Value: value, Create: create}) // a port is one
	_, name, _ := strings.Cut(key, ".")
	h.Flags = "--" + cmp.Or(strings.ReplaceAll(name, "_", "-"), "preset") + " " + shell.QuotePath(value)
	if create {
		h.Flags = "--create-missing " + h.Flags
	}
	return h
}

// And is both of two hints that have a policy.
func (h Hint) And(o Hint) Hint {
	return Hint{Flags: h.Flags + " " + o.Flags, Policy: policy.Merge(h.Policy, o.Policy)}
}

// Typed is the flags for a run that had those of r: the first flag for a file takes away
// that the working directory can be read and executed.
func (h Hint) Typed(r *policy.Resolved) string {
	first := slices.ContainsFunc(r.Paths, func(p policy.Path) bool { return p.Rule.Origin.Source == "default" })
	if !first || h.Policy == nil || len(h.Policy.FS.Rules) == 0 || h.Policy.FS.Rules[0].Path == "." {
		return h.Flags
	}
	return "--rox . " + h.Flags
}

// TOML is the policy as one line, each table's name before its keys.
func (h Hint) TOML() string {
	text, _ := policy.Amend(policy.ProjectFile, nil, h.Policy) // nothing on an error
	return strings.NewReplacer("[\n  ", "[", ",\n]", "]", "\n  ", " ", "\n", " ").Replace(strings.TrimSpace(string(text)))
}

// JSON is the policy on one line, nil for none.
func (h Hint) JSON() json.RawMessage {
	var b bytes.Buffer
	if h.Policy == nil || h.Policy.EncodeJSON(&b) != nil {
		return nil
	}
	return b.Bytes()
}
