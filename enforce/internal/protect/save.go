package protect

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zsbx/zsbx/internal/object"
	"github.com/zsbx/zsbx/policy"
)

// This file writes a Snapshot as JSON, so that a later process can tell what changed if this one
// is killed. Paths may have any bytes: see bytesOf.

// savedFormat changes whenever an older reader would misunderstand the rest.
const savedFormat = 2

type saved struct {
	Format   int            `json:"format"`
	Watch    []savedWatch   `json:"watch,omitempty"`
	Near     []string       `json:"near,omitempty"`
	Repos    []string       `json:"repos,omitempty"`
	Projects []savedProject `json:"projects,omitempty"`
	Trees    []string       `json:"trees,omitempty"`
	Later    []savedDenial  `json:"later,omitempty"`
	Mounted  bool           `json:"mounted,omitempty"`
	Named    []string       `json:"named,omitempty"`
	Links    []string       `json:"links,omitempty"`
}

type savedWatch struct {
	Path string `json:"path"`
	Kind Kind   `json:"kind"`
	Tree string `json:"tree,omitempty"`

	Presence policy.Presence `json:"presence,omitempty"` // and the rest is what was there
	Unlisted bool            `json:"unlisted,omitempty"`

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
	out := saved{
		Format: savedFormat, Mounted: a.Mounted,
		Near: textsOf(a.Near), Repos: textsOf(a.Repos), Trees: textsOf(a.Trees),
		Named: textsOf(slices.Sorted(maps.Keys(s.named))), Links: textsOf(slices.Sorted(maps.Keys(s.links))),
	}
	for i, w := range a.Watch {
		b := s.before[i]
		out.Watch = append(out.Watch, savedWatch{
			Path: textOf(w.Path), Kind: w.Kind, Tree: textOf(w.tree), Presence: b.presence, Unlisted: b.unlisted,
			Dev: b.id.Dev, Ino: b.id.Ino, Sec: b.changed[0], Nsec: b.changed[1], Size: b.size, Entries: textOf(b.entries),
		})
	}
	for _, p := range a.projects {
		out.Projects = append(out.Projects, savedProject{textOf(p.dir), textsOf(p.had), textsOf(p.closed)})
	}
	for _, d := range a.Later {
		out.Later = append(out.Later, savedDenial{textOf(d.Pattern), d.Glob})
	}
	return object.Of(&out)
}

// Load returns a snapshot that another process saved. Its Changes looks at this host.
func Load(b []byte, host *policy.Host) (*Snapshot, error) {
	var in saved
	if err := json.Unmarshal(b, &in); err != nil {
		return nil, err
	}
	if in.Format != savedFormat {
		return nil, fmt.Errorf("format %d, this version of zsbx reads %d", in.Format, savedFormat)
	}
	a := &Audit{Near: bytesOfAll(in.Near), Repos: bytesOfAll(in.Repos), Trees: bytesOfAll(in.Trees), Mounted: in.Mounted}
	s := &Snapshot{audit: a, left: maxIndexes, named: setOf(in.Named), links: setOf(in.Links)}
	s.host = charged(host, &s.left)
	for _, w := range in.Watch {
		a.Watch = append(a.Watch, Watched{bytesOf(w.Path), w.Kind, bytesOf(w.Tree)})
		s.before = append(s.before, state{
			presence: w.Presence, unlisted: w.Unlisted, id: policy.FileID{Dev: w.Dev, Ino: w.Ino},
			changed: [2]int64{w.Sec, w.Nsec}, size: w.Size, entries: bytesOf(w.Entries),
		})
	}
	for _, p := range in.Projects {
		a.projects = append(a.projects, project{bytesOf(p.Dir), bytesOfAll(p.Had), bytesOfAll(p.Closed)})
	}
	for _, d := range in.Later {
		a.Later = append(a.Later, policy.DenyPath{Pattern: bytesOf(d.Pattern), Glob: d.Glob})
	}
	return s, nil
}

// Marks before a text: the text itself, or its bytes in hexadecimal if it is not UTF-8.
const (
	plainText = "="
	hexText   = "%"
)

// textOf returns any bytes as text, "" for none. bytesOf reverses it.
func textOf(s string) string {
	switch {
	case s == "":
		return ""
	case utf8.ValidString(s):
		return plainText + s
	}
	return hexText + hex.EncodeToString([]byte(s))
}

func bytesOf(text string) string {
	if s, ok := strings.CutPrefix(text, plainText); ok {
		return s
	}
	b, _ := hex.DecodeString(strings.TrimPrefix(text, hexText))
	return string(b)
}

func textsOf(all []string) (out []string) {
	for _, s := range all {
		out = append(out, textOf(s))
	}
	return out
}

func bytesOfAll(texts []string) (out []string) {
	for _, t := range texts {
		out = append(out, bytesOf(t))
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
