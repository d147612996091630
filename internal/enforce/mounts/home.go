package mounts

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// home makes the home directory private. It plans a directory below the temporary one to be
// mounted on it, and what the policy allows in the home on top. If the policy asks for this but
// it can't be done, home returns why. In a private home the command has all rights except those
// for devices; denied files in what is mounted there are masked (see deny.Request.Private).
func (q *Request) home(mp *Plan) string {
	r := q.Policy
	if !r.Private.Home.Is() || q.NoHome != "" {
		return q.NoHome
	}
	home, why := PrivateHome(r, q.Host)
	stays := func(t *resolve.Path) bool {
		inside := t.Path != home && host.Within(t.Path, home)
		return inside && (t.Access&policy.Read != 0 || t.Mode&fs.ModeSocket != 0)
	}
	why = cmp.Or(why, q.taken(home, stays))
	if why != "" {
		return why
	}
	const all = policy.Read | policy.Write | policy.Exec
	d := PrivateDir{Path: home, From: r.TempDir + "/.home", Rights: landlock.Rights(all, home, fs.ModeDir, q.Handled)}
	q.keep(&d)
	if len(d.Back) > maxWritable {
		return fmt.Sprintf("%d paths in it are allowed, more than %d", len(d.Back), maxWritable)
	}
	mp.Private = append(mp.Private, d)
	return ""
}

// PrivateHome returns the directory that a private home would replace, or why there can be
// none.
func PrivateHome(r *resolve.Resolved, h *host.Host) (home, why string) {
	if r.Home == "" || r.TempDir == "" {
		return "", "there is no home directory, or no temporary one that could take its place"
	}
	home, st, err := h.RealPath(r.Home)
	switch {
	case err != nil:
		return "", err.Error()
	case !st.Mode.IsDir() || home == "/" || slices.Contains(tmpDirs(), home):
		return "", home + " is no home directory"
	}
	return home, ""
}

// keep finds what stays in a private directory: allowed paths, sockets that may be connected
// to, links in rules' paths, and the working directory. It leaves out what has no more rights
// than something kept around it.
func (q *Request) keep(d *PrivateDir) {
	var all []Back
	add := func(b Back) {
		if b.Path != d.Path && host.Within(b.Path, d.Path) {
			all = append(all, b)
		}
	}
	for _, t := range q.Trees {
		add(Back{Path: t.Path, Mode: t.Mode, ID: t.ID, Access: t.Access})
	}
	for _, s := range q.Policy.Net.Unix {
		add(Back{Path: s.Path, Mode: s.Mode, ID: s.ID})
	}
	for _, paths := range [][]resolve.Path{q.Policy.Paths, q.Policy.Net.Unix} {
		for i := range paths {
			for _, l := range paths[i].Links {
				add(Back{Path: l, Mode: fs.ModeSymlink})
			}
		}
	}
	add(Back{Path: q.Policy.Dir, Mode: fs.ModeDir})
	slices.SortStableFunc(all, func(a, b Back) int { return landlock.ComparePaths(a.Path, b.Path) })
	for _, b := range slices.Compact(all) {
		around := d.around(b.Path)
		if around != nil {
			b.Access |= around.Access
		}
		switch {
		case around != nil && b.Access == around.Access:
		case b.ID != host.FileID{}:
			d.Back = append(d.Back, b)
		default:
			b.To, _ = q.Host.Readlink(b.Path) // harmless: "" makes a directory, and the link's target stays away
			d.Made = append(d.Made, b)
		}
	}
}

// around returns the innermost of the mounts in Back that a path is in, or nil.
func (d *PrivateDir) around(p string) *Back {
	for i := range slices.Backward(d.Back) {
		if host.Within(p, d.Back[i].Path) {
			return &d.Back[i]
		}
	}
	return nil
}

// Leads reports whether a path leads to something that is mounted or made in a private
// directory.
func (mp *Plan) Leads(p string) bool {
	return slices.ContainsFunc(mp.Private, func(d PrivateDir) bool {
		return slices.ContainsFunc(slices.Concat(d.Back, d.Made), func(b Back) bool { return host.Within(b.Path, p) })
	})
}

// PrivateIn returns the private directory of files that a path is in, or "". The command does
// not see the outside's files there.
func (mp *Plan) PrivateIn(p string) string {
	if mp == nil {
		return ""
	}
	for _, d := range mp.Private {
		if (d.Kind == tmpfs || d.From != "") && host.Within(p, d.Path) && d.around(p) == nil {
			return d.Path
		}
	}
	return ""
}

// SSHDir is where distributions configure ssh(1).
const SSHDir = "/etc/ssh/ssh_config.d"

// copied is a copy of a file. It belongs to the command's user.
type copied struct{ Name, Text string }

// The limits for copies.
const (
	maxSSHFiles = 32
	maxSSHSize  = 64 << 10 // bytes of one file
)

// SSHCopies returns copies of the files in SSHDir, for use in a user namespace. There the files
// themselves seem to belong to nobody, and ssh(1) refuses included files that belong to neither
// root nor its user. For the same reason the copies lack include lines.
func SSHCopies(r *resolve.Resolved, h *host.Host) (out []copied) {
	inPolicy := slices.ContainsFunc(r.Paths, func(t resolve.Path) bool {
		return t.Access&policy.Read != 0 && host.Within(SSHDir, t.Path)
	})
	if !inPolicy {
		return nil
	}
	entries, _ := h.Entries(SSHDir, -1) // harmless: SSH itself refuses files of unknown owners
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".conf") {
			continue
		}
		real, _, err := h.RealPath(SSHDir + "/" + e.Name())
		if err != nil {
			return nil
		}
		data, err := h.ReadFile(real)
		if err != nil || len(data) > maxSSHSize || len(out) == maxSSHFiles {
			return nil
		}
		var b strings.Builder
		for line := range strings.Lines(string(data)) {
			words := strings.FieldsFunc(line, func(r rune) bool { return r <= ' ' || r == '=' || r == '"' })
			if len(words) == 0 || !strings.EqualFold(words[0], "include") {
				b.WriteString(line)
			}
		}
		out = append(out, copied{e.Name(), b.String()})
	}
	return out
}
