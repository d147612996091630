package learn

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
)

// Hint is what would allow something: as a flag of run, and as a key of a policy file
// with a value. The zero value is none.
type Hint struct {
	Flag, Value string // "--rw", "."; Value may be ""
	Key         string // "fs.rw"; "" where no policy file can say it
	Create      bool   // the directory is missing, and is to be made
}

// Hint is the proposal in words to type. Paths are written from the working directory
// and the home directory of r.
func (q *Proposal) Hint(r *policy.Resolved) Hint {
	if q.Preset != "" {
		return Hint{Flag: "--preset", Value: q.Preset, Key: "presets"}
	}
	h := Hint{Key: cmp.Or(q.Key, "fs."+(q.Access|policy.Read).String()), Value: strconv.Itoa(int(q.Port)), Create: q.Dir && q.Change}
	if q.Path != "" {
		h.Value = r.Short(q.Path)
	}
	_, name, _ := strings.Cut(h.Key, ".")
	h.Flag = "--" + strings.ReplaceAll(name, "_", "-")
	return h
}

// String is the flag as a shell takes it, or "".
func (h Hint) String() string {
	words := h.Flag
	if rest, ok := strings.CutPrefix(h.Value, "~/"); ok && shell.Quote(rest) == rest { // the shell may expand it as well
		words += " " + h.Value
	} else if h.Value != "" {
		words += " " + shell.Quote(h.Value)
	}
	if h.Create {
		words = "--create-missing " + words
	}
	return words
}

// Put adds it to a policy, and returns that.
func (h Hint) Put(p *policy.Policy) *policy.Policy {
	if h.Key != "" {
		_ = p.Put(h.Key, policy.Named{Value: h.Value}) // a port is one
	}
	if h.Create {
		p.FS.Rules[len(p.FS.Rules)-1].Create = true
	}
	return p
}

// TOML is the line of a policy file, behind its table, or "".
func (h Hint) TOML() string {
	text, _ := policy.Amend(policy.ProjectFile, nil, h.Put(&policy.Policy{})) // nothing on an error
	return strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", " ")
}

// JSON is a policy that says it, nil for none.
func (h Hint) JSON() json.RawMessage {
	var b, line bytes.Buffer
	if h.Key == "" || h.Put(&policy.Policy{}).EncodeJSON(&b) != nil || json.Compact(&line, b.Bytes()) != nil {
		return nil
	}
	return line.Bytes()
}
