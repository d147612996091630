package learn

import (
	"bytes"
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

// Hint is the proposal in words to type, but for Create. Paths are written from the
// working directory and the home directory of r.
func (q *Proposal) Hint(r *policy.Resolved) Hint {
	h := Hint{Value: strconv.Itoa(int(q.Port))}
	switch {
	case q.Preset != "":
		return Hint{Flag: "--preset", Value: q.Preset, Key: "presets"}
	case q.Socket:
		h.Key, h.Value = "net.unix", r.Short(q.Path)
	case q.Bind:
		h.Key = "net.bind_tcp"
	case q.Port != 0:
		h.Key = "net.connect_tcp"
	default:
		h.Key, h.Value = "fs."+(q.Access|policy.Read).String(), r.Short(q.Path)
	}
	_, name, _ := strings.Cut(h.Key, ".")
	h.Flag = "--" + strings.ReplaceAll(name, "_", "-")
	return h
}

// String is the flag as a shell takes it, or "".
func (h Hint) String() string {
	if h.Create {
		h.Create = false
		return "--create-missing " + h.String()
	}
	if h.Value == "" {
		return h.Flag
	}
	if rest, ok := strings.CutPrefix(h.Value, "~/"); ok && shell.Quote(rest) == rest { // the shell may expand it as well
		return h.Flag + " " + h.Value
	}
	return h.Flag + " " + shell.Quote(h.Value)
}

// put adds it to a policy.
func (h Hint) put(p *policy.Policy) *policy.Policy {
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
	text, err := policy.Amend(policy.ProjectFile, nil, h.put(&policy.Policy{}))
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", " ")
}

// JSON is a policy that says it, nil for none.
func (h Hint) JSON() json.RawMessage {
	var b, line bytes.Buffer
	if h.Key == "" || h.put(&policy.Policy{}).EncodeJSON(&b) != nil || json.Compact(&line, b.Bytes()) != nil {
		return nil
	}
	return line.Bytes()
}
