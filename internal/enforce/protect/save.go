package protect

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/object"
	"github.com/zsbx/zsbx/internal/resolve"
)

// This file writes a Snapshot as JSON, so that a later process can tell what changed if this one
// is killed. Paths may have any bytes, so they are quoted (strconv.Quote).

// savedFormat changes whenever an older reader would misunderstand the rest.
const savedFormat = 3

type saved struct {
	Format   int            `json:"format"`
	Paths    []savedPath    `json:"watch,omitempty"`
	Near     []string       `json:"near,omitempty"`
	Repos    []string       `json:"repos,omitempty"`
	Projects []savedProject `json:"projects,omitempty"`
	Trees    []string       `json:"trees,omitempty"`
	Later    []savedDenial  `json:"later,omitempty"`
	Mounted  bool           `json:"mounted,omitempty"`
	Named    []string       `json:"named,omitempty"`
	Links    []string       `json:"links,omitempty"`
}

type savedPath struct {
	Path string `json:"path"`
	Kind Kind   `json:"kind"`
	Tree string `json:"tree,omitempty"`

	Presence host.Presence `json:"presence,omitempty"` // and the rest is what was there
	Unlisted bool          `json:"unlisted,omitempty"`

	Dev     uint64 `json:"dev,omitempty"`
	Ino     uint64 `json:"ino,omitempty"`
	Sec     int64  `json:"sec,omitempty"` // status change time
	Nsec    int64  `json:"nsec,omitempty"`
	Size    int64  `json:"size,omitempty"`
	Entries string `json:"entries,omitempty"`
}

type savedProject struct {
	Dir    string   `json:"dir"`
	Had    []string `json:"had"`
	Closed []string `json:"closed,omitempty"`
}

type savedDenial struct {
	Pattern string `json:"pattern"`
	Glob    bool   `json:"glob,omitempty"`
}

// Save returns the snapshot for Load.
func (s *Snapshot) Save() []byte {
	a := s.audit
	quoted := func(all []string) []string { return each(all, strconv.Quote) }
	out := saved{
		Format:  savedFormat,
		Mounted: a.Mounted,
		Near:    quoted(a.Near),
		Repos:   quoted(a.Repos),
		Trees:   quoted(a.Trees),
		Named:   quoted(slices.Sorted(maps.Keys(s.named))),
		Links:   quoted(slices.Sorted(maps.Keys(s.links))),
	}
	for i, w := range a.Paths {
		b := s.before[i]
		out.Paths = append(out.Paths, savedPath{
			Path: strconv.Quote(w.Path), Kind: w.Kind, Tree: strconv.Quote(w.tree),
			Presence: b.presence, Unlisted: b.unlisted,
			Dev: b.id.Dev, Ino: b.id.Ino, Sec: b.changed[0], Nsec: b.changed[1], Size: b.size,
			Entries: strconv.Quote(b.entries),
		})
	}
	for _, p := range a.projects {
		out.Projects = append(out.Projects, savedProject{strconv.Quote(p.dir), quoted(p.had), quoted(p.closed)})
	}
	for _, d := range a.Later {
		out.Later = append(out.Later, savedDenial{strconv.Quote(d.Pattern), d.Glob})
	}
	return object.Of(&out)
}

// Load returns a snapshot that another process saved. Its Changes looks at this host.
func Load(b []byte, h *host.Host) (*Snapshot, error) {
	var in saved
	if err := json.Unmarshal(b, &in); err != nil {
		return nil, err
	}
	if in.Format != savedFormat {
		return nil, fmt.Errorf("format %d, this version of zsbx reads %d", in.Format, savedFormat)
	}
	paths := func(texts []string) []string { return each(texts, bytesOf) }
	a := &Audit{Near: paths(in.Near), Repos: paths(in.Repos), Trees: paths(in.Trees), Mounted: in.Mounted}
	s := &Snapshot{plain: h, audit: a, left: maxIndexes, named: setOf(in.Named), links: setOf(in.Links)}
	s.host = charged(h, &s.left)
	for _, w := range in.Paths {
		a.Paths = append(a.Paths, Compared{bytesOf(w.Path), w.Kind, bytesOf(w.Tree)})
		s.before = append(s.before, state{
			presence: w.Presence, unlisted: w.Unlisted, id: host.FileID{Dev: w.Dev, Ino: w.Ino},
			changed: [2]int64{w.Sec, w.Nsec}, size: w.Size, entries: bytesOf(w.Entries),
		})
	}
	for _, p := range in.Projects {
		a.projects = append(a.projects, project{bytesOf(p.Dir), paths(p.Had), paths(p.Closed)})
	}
	for _, d := range in.Later {
		a.Later = append(a.Later, resolve.DenyPath{Pattern: bytesOf(d.Pattern), Glob: d.Glob})
	}
	return s, nil
}

// bytesOf reverses strconv.Quote.
func bytesOf(text string) string {
	s, _ := strconv.Unquote(text)
	return s
}

func each[T, U any](all []T, f func(T) U) (out []U) {
	for _, x := range all {
		out = append(out, f(x))
	}
	return out
}

func setOf(texts []string) map[string]bool {
	set := make(map[string]bool)
	for _, t := range texts {
		set[bytesOf(t)] = true
	}
	return set
}
