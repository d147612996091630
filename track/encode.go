package track

import (
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// object writes a JSON object. encoding/json would do, but its first use in a
// process takes 0.3 ms and more, and a session's records are written in every
// run of zsbx.
type object struct{ b []byte }

func newObject() *object { return &object{b: append(make([]byte, 0, 1024), '{')} }

func (o *object) end() []byte { return append(o.b, '}') }

func (o *object) key(k string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(appendQuoted(o.b, k), ':')
}

func (o *object) str(k, v string) {
	o.key(k)
	o.b = appendQuoted(o.b, v)
}

// optional leaves an empty string out.
func (o *object) optional(k, v string) {
	if v != "" {
		o.str(k, v)
	}
}

// flag leaves false out.
func (o *object) flag(k string, v bool) {
	if v {
		o.key(k)
		o.b = append(o.b, "true"...)
	}
}

func (o *object) num(k string, v uint64) {
	o.key(k)
	o.b = strconv.AppendUint(o.b, v, 10)
}

func (o *object) strs(k string, vs []string) {
	o.key(k)
	o.b = append(o.b, '[')
	for i, v := range vs {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = appendQuoted(o.b, v)
	}
	o.b = append(o.b, ']')
}

func (o *object) proc(k string, p ProcID) {
	o.key(k)
	o.b = strconv.AppendInt(append(o.b, `{"pid":`...), int64(p.Pid), 10)
	o.b = append(strconv.AppendUint(append(o.b, `,"start":`...), p.Start, 10), '}')
}

func (o *object) time(k string, t time.Time) {
	o.key(k)
	o.b = append(t.UTC().AppendFormat(append(o.b, '"'), time.RFC3339Nano), '"')
}

// appendQuoted writes s as a JSON string; bytes that are no UTF-8 become the
// replacement character.
func appendQuoted(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// encode gives the stored form of a record, the unknown fields of a later
// version included.
func (r *Record) encode() []byte {
	o := newObject()
	o.num("version", recordVersion)
	o.str("id", r.ID)
	o.optional("name", r.Name)
	o.str("host", r.Host)
	o.str("boot", r.Boot)
	o.num("pid_ns", r.PidNS)
	o.num("uid", uint64(r.UID))
	o.proc("supervisor", r.Supervisor)
	o.strs("argv", r.Argv)
	o.flag("argv_cut", r.ArgvCut)
	o.optional("dir", r.Dir)
	o.optional("temp", r.Temp)
	o.time("started", r.Started)
	o.flag("keep", r.Keep)
	o.flag("exec", r.Exec)
	o.flag("track_only", r.TrackOnly)
	for _, k := range slices.Sorted(maps.Keys(r.extra)) {
		o.key(k)
		o.b = append(o.b, r.extra[k]...)
	}
	return o.end()
}

// encode gives the stored form of a holder.
func (h *Holder) encode() []byte {
	o := newObject()
	o.str("tracker", string(h.Tracker))
	o.proc("keeper", h.Keeper)
	o.proc("command", h.Command)
	if c := h.Cgroup; c != nil {
		o.key("cgroup")
		g := newObject()
		g.str("path", c.Path)
		g.num("inode", c.Inode)
		g.optional("unit", c.Unit)
		o.b = append(o.b, g.end()...)
	}
	return o.end()
}
