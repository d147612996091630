package track

import (
	"maps"
	"slices"

	"github.com/zsbx/zsbx/track/internal/object"
)

// encode gives the stored form of a process's identity.
func (p ProcID) encode() []byte {
	o := object.New()
	o.Num("pid", uint64(p.Pid))
	o.Num("start", p.Start)
	return o.End()
}

// encode gives the stored form of a record, the unknown fields of a later
// version included.
func (r *Record) encode() []byte {
	o := object.New()
	o.Num("version", recordVersion)
	o.Str("id", r.ID)
	o.Optional("name", r.Name)
	o.Str("host", r.Host)
	o.Str("boot", r.Boot)
	o.Num("pid_ns", r.PidNS)
	o.Num("uid", uint64(r.UID))
	o.Raw("supervisor", r.Supervisor.encode())
	o.Strs("argv", r.Argv)
	o.Flag("argv_cut", r.ArgvCut)
	o.Optional("dir", r.Dir)
	o.Optional("temp", r.Temp)
	o.Time("started", r.Started)
	o.Flag("keep", r.Keep)
	o.Flag("exec", r.Exec)
	o.Flag("track_only", r.TrackOnly)
	for _, k := range slices.Sorted(maps.Keys(r.extra)) {
		o.Raw(k, r.extra[k])
	}
	return o.End()
}

// encode gives the stored form of a holder.
func (h *Holder) encode() []byte {
	o := object.New()
	o.Str("tracker", string(h.Tracker))
	o.Raw("keeper", h.Keeper.encode())
	o.Raw("command", h.Command.encode())
	if c := h.Cgroup; c != nil {
		g := object.New()
		g.Str("path", c.Path)
		g.Num("inode", c.Inode)
		g.Optional("unit", c.Unit)
		o.Raw("cgroup", g.End())
	}
	return o.End()
}
