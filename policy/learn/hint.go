package learn

import (
	"strconv"
	"strings"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
)

// Hint is what would allow something: as a flag of run, and as a line of a policy file.
// The zero value is none.
type Hint struct {
	Flag, Value string // "--rw", "."; Value may be ""
	Table, Key  string // "fs", "rw"; Key is "" where no policy file can say it
	Create      bool   // the directory is missing, and is to be made
}

// Hint is the proposal in words to type. Paths are written from the working directory
// and the home directory of r.
func (q *Proposal) Hint(r *policy.Resolved) Hint {
	h := Hint{Table: "net"}
	switch port := strconv.Itoa(int(q.Port)); {
	case q.Preset != "":
		return Hint{Flag: "--preset", Value: q.Preset, Key: "presets"}
	case q.Socket:
		h.Key, h.Value = "unix", r.Short(q.Path)
	case q.Bind:
		h.Key, h.Value = "bind_tcp", port
	case q.Port != 0:
		h.Key, h.Value = "connect_tcp", port
	default:
		h = Hint{Table: "fs", Key: (q.Access | policy.Read).String(), Value: r.Short(q.Path)}
	}
	h.Flag = "--" + strings.ReplaceAll(h.Key, "_", "-")
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

// value is the element of a list in a policy file.
func (h Hint) value() any {
	if h.Table == "net" && h.Key != "unix" {
		port, _ := strconv.Atoi(h.Value)
		return port
	}
	return h.Value
}

// line is "key = [value]" of a policy file.
func (h Hint) line() string {
	value := h.Value
	if _, quoted := h.value().(string); quoted {
		value = policy.QuoteTOML(value)
	}
	return h.Key + " = [" + value + "]"
}

// TOML is the line of a policy file, with its table, or "".
func (h Hint) TOML() string {
	if h.Key == "" || h.Create { // a list of strings has no word for it
		return ""
	}
	return "[" + h.Table + "] " + h.line()
}

// Data is the same as a table of tables, for JSON; nil for none.
func (h Hint) Data() map[string]map[string][]any {
	if h.Key == "" || h.Create {
		return nil
	}
	return map[string]map[string][]any{h.Table: {h.Key: {h.value()}}}
}
