package enforce

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/enforce/internal/deny"
	"github.com/zsbx/zsbx/policy"
)

// linkedHost is treeHost, where the files in each group are one file by
// several names; a number in front says how many it has elsewhere.
func linkedHost(elsewhere uint64, groups ...string) *policy.Host {
	files := map[string]string{"/w/plain": "", "/ro/plain": ""}
	id, links := map[string]uint64{}, map[string]uint64{}
	for i, g := range groups {
		for _, f := range strings.Fields(g) {
			files[f], id[f], links[f] = "", uint64(1000+i), uint64(len(strings.Fields(g)))+elsewhere
		}
	}
	h := treeHost(files)
	lstat := h.Lstat
	h.Lstat = func(p string) (policy.Stat, error) {
		st, err := lstat(p)
		if err == nil && !st.Mode.IsDir() {
			st.Links = 1
		}
		if n := links[p]; n > 0 {
			st.ID.Ino, st.Links = id[p], n
		}
		return st, err
	}
	return h
}

func TestDenyLinks(t *testing.T) {
	for _, c := range []struct {
		name      string
		elsewhere uint64
		groups    []string
		deny      []string
		want      string
	}{
		{name: "one name", groups: []string{"/w/a"}, deny: []string{"/w/a"}},
		{name: "not denied", groups: []string{"/w/a /w/b"}, deny: []string{"/w/plain"}},
		{name: "another name beside it", groups: []string{"/w/a /w/b"}, deny: []string{"/w/a"},
			want: "/w/a: /w/a has 2 names (hard links)"},
		{name: "another name elsewhere", elsewhere: 2, groups: []string{"/w/a"}, deny: []string{"/w/a"},
			want: "/w/a: /w/a has 3 names (hard links)"},
		{name: "by a glob", groups: []string{"/w/x/.env /w/b"}, deny: []string{"/w/**/.env"},
			want: "/w/**/.env: /w/x/.env has 2 names (hard links)"},
		{name: "by a glob in a read-only tree", groups: []string{"/ro/x/.env /w/b"}, deny: []string{"/ro/**/.env"},
			want: "/ro/**/.env: /ro/x/.env has 2 names (hard links)"},
		{name: "out of reach", groups: []string{"/home/key /w/b"}, deny: []string{"/home/key"},
			want: "/home/key: /home/key has 2 names (hard links)"},
		{name: "all names denied", groups: []string{"/w/a /w/b"}, deny: []string{"/w/a", "/w/b"}},
		{name: "all names denied by globs", groups: []string{"/w/x/.env /ro/y/.env"}, deny: []string{"/**/.env"}},
		{name: "the other name goes with it", groups: []string{"/ro/a /ro/b"}, deny: []string{"/ro/a"}},
		{name: "in a directory", groups: []string{"/w/keys/id /w/b"}, deny: []string{"/w/keys"},
			want: "/w/keys: /w/keys/id has 2 names (hard links)"},
		{name: "deep in a directory", groups: []string{"/w/keys/x/y/id /w/b"}, deny: []string{"/w/keys"},
			want: "/w/keys: /w/keys/x/y/id has 2 names (hard links)"},
		{name: "in a directory out of reach", groups: []string{"/home/.ssh/id /w/b"}, deny: []string{"/home/.ssh"},
			want: "/home/.ssh: /home/.ssh/id has 2 names (hard links)"},
		{name: "in a directory of a read-only tree", groups: []string{"/ro/keys/id /w/b"}, deny: []string{"/ro/keys"},
			want: "/ro/keys: /ro/keys/id has 2 names (hard links)"},
		{name: "in directories by a glob", groups: []string{"/ro/x/keys/id /w/b", "/w/x/keys/id /w/c"}, deny: []string{"/**/keys"},
			want: "/**/keys: /w/x/keys/id has 2 names (hard links), /ro/x/keys/id has 2 names (hard links)"},
		{name: "both names in directories", groups: []string{"/w/keys/id /w/more/x/id"}, deny: []string{"/w/keys", "/w/more"}},
		{name: "one name in a directory, one denied by itself", groups: []string{"/w/keys/id /w/b"}, deny: []string{"/w/b", "/w/keys"}},
		{name: "many", groups: []string{"/w/1.env /w/b1", "/w/2.env /w/b2", "/w/3.env /w/b3", "/w/4.env /w/b4"}, deny: []string{"/w/*.env"},
			want: "/w/*.env: /w/1.env has 2 names (hard links), /w/2.env has 2 names (hard links), /w/3.env has 2 names (hard links), and 1 more files"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := linkedHost(c.elsewhere, c.groups...)
			r := asked(h, "", []string{"/w"}, c.deny...)
			st, _ := h.Lstat("/ro")
			r.Paths = append(r.Paths, policy.Path{Path: "/ro", Access: policy.Read, Mode: fs.ModeDir, ID: st.ID})
			for _, os := range []string{"linux", "macos"} {
				caps := canMount()
				caps.OS, caps.Seatbelt = os, os == "macos"
				got := []string{}
				for _, g := range NewPlan(r, caps, h).Gaps {
					if g.Name == GapDenyLinks {
						got = append(got, strings.TrimPrefix(g.Promise, "no access by another name to what is denied as ")+": "+g.Why)
					}
				}
				if os == "macos" && (strings.Contains(strings.Join(c.deny, ""), "*") || c.name == "the other name goes with it") {
					continue // a profile takes patterns, and closes names only
				}
				if strings.Join(got, "\n") != c.want {
					t.Errorf("%s: got %q, want %q", os, got, c.want)
				}
			}
		})
	}
}

// TestDenyLinksBound: a denied directory may hold a million files, which are
// not all looked at; that some were not is said.
func TestDenyLinksBound(t *testing.T) {
	for _, c := range []struct {
		files int
		want  string
	}{
		{deny.MaxDeniedEntries - 1, "/w/big/sub/id has 2 names (hard links)"},
		{deny.MaxDeniedEntries, "only 1000 entries of denied directories are looked at for files with several names (hard links), and not all of /w/big/sub"},
		{deny.MaxDeniedEntries + 1, "only 1000 entries of denied directories are looked at for files with several names (hard links), and not all of /w/big"},
	} {
		groups := []string{"/w/big/sub/id /w/b"}
		for i := range c.files - 1 { // and "sub"
			groups = append(groups, fmt.Sprintf("/w/big/%d", i))
		}
		if c.files < deny.MaxDeniedEntries {
			groups = groups[:len(groups)-1] // "id" counts as well
		}
		h := linkedHost(0, groups...)
		looked := 0
		lstat := h.Lstat
		h.Lstat = func(p string) (policy.Stat, error) {
			if strings.HasPrefix(p, "/w/big/") {
				looked++
			}
			return lstat(p)
		}
		var got []string
		for _, g := range NewPlan(asked(h, "", []string{"/w"}, "/w/big"), canMount(), h).Gaps {
			if g.Name == GapDenyLinks {
				got = append(got, g.Why)
			}
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%d files: got %q, want %q", c.files, got, c.want)
		}
		if looked > deny.MaxDeniedEntries+10 {
			t.Errorf("%d files: %d were looked at", c.files, looked)
		}
	}
}
