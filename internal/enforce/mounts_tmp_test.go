package enforce

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// TestPrivateTmp: /tmp and /var/tmp are private unless a rule names something in them, since
// what Landlock allows in a private one would hold for that, too.
func TestPrivateTmp(t *testing.T) {
	h := treeHost(map[string]string{
		"/tmp/zsbx-1/run/": "", "/tmp/proj/.env": "", "/tmp/s/sock": "", "/tmp/s/deep": "->/w", "/var/tmp/x": "", "/w/.env": "",
		"/deep/tmp/zsbx-1/": "",
	})
	linked := treeHost(map[string]string{"/tmp/zsbx-1/": "", "/var/tmp": "->/tmp", "/w/": ""})
	const both = "/tmp[/tmp/zsbx-1] /var/tmp[]"
	for _, c := range []struct {
		name         string
		rules        string // "rw /w", separated by commas
		deny         string
		dir, temp    string
		socket, kind string
		host         *host.Host
		opts         Options
		caps         func(*Caps)
		want         string
		why          string // part of the layer's text
	}{
		{name: "by default", want: both, why: "in memory"},
		{name: "a denial elsewhere", deny: "/w/.env", want: both},
		{name: "a denial below", deny: "/tmp/proj/.env", want: both},
		{name: "it is denied", deny: "/tmp", temp: "/deep/tmp/zsbx-1", want: "/var/tmp[]", why: "it is denied"},
		{name: "it is denied by a glob", deny: "/t*", temp: "/deep/tmp/zsbx-1", want: "/var/tmp[]"},
		{name: "the temporary directory is denied", deny: "/tmp/zsbx-*", want: ""},
		{name: "no temporary directory: --shared-tmp, --no-baseline", temp: "-", want: ""},
		{name: "it is elsewhere", temp: "/deep/tmp/zsbx-1", want: "/tmp[] /var/tmp[]"},
		{name: "read below", rules: "ro /tmp/proj", want: "/var/tmp[]", why: "/tmp as outside, closed except for what is allowed: /tmp/proj is allowed (--ro)"},
		{name: "written below", rules: "rw /tmp/proj", want: "/var/tmp[]"},
		{name: "itself", rules: "rw /tmp", want: "/var/tmp[]"},
		{name: "what is around", rules: "ro /", want: ""},
		{name: "what is around the other", rules: "ro /var", want: "/tmp[/tmp/zsbx-1]"},
		{name: "the working directory", dir: "/tmp/proj", want: "/var/tmp[]", why: "the working directory"},
		{name: "the working directory itself", dir: "/tmp", want: "/var/tmp[]"},
		{name: "a socket", socket: "/tmp/s/sock", want: "/tmp[/tmp/s/sock /tmp/zsbx-1] /var/tmp[]"},
		{name: "a directory of sockets", socket: "/tmp/s", want: "/var/tmp[]"},
		{name: "a link", rules: "rw /tmp/s/deep", want: "/tmp[/tmp/zsbx-1 /tmp/s/deep->/w] /var/tmp[]"},
		{name: "one leads to the other", host: linked, want: "/tmp[/tmp/zsbx-1]"},
		{name: "no namespace", caps: func(c *Caps) { c.MountNS = false }, want: "", why: "no mount namespace"},
		{name: "none wanted", opts: Options{Accepted: []string{GapMetadata, GapIPC, GapTerminals}}, want: "", why: "no mount namespace"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := h
			if c.host != nil {
				h = c.host
			}
			var deny []string
			if c.deny != "" {
				deny = []string{c.deny}
			}
			r := asked(h, "", []string{"/w"}, deny...)
			if c.dir != "" {
				r.Dir = c.dir
			}
			add := func(access policy.Access, path, origin string) resolve.Path {
				real, links, st, err := h.Trail(path)
				if err != nil {
					t.Fatal(err)
				}
				return resolve.Path{Path: real, Access: access, Mode: st.Mode.Type(), ID: st.ID, Links: links, Written: path,
					Rule: policy.Rule{Path: path, Access: access, Origin: policy.Origin{Source: origin}}}
			}
			if c.temp == "" {
				c.temp = "/tmp/zsbx-1"
			}
			if c.temp != "-" {
				r.TempDir = c.temp
				r.Paths = append(r.Paths, add(policy.Read|policy.Write|policy.Exec, c.temp, "private temporary directory"))
			}
			for _, rule := range strings.Split(c.rules, ",") {
				if kind, path, ok := strings.Cut(rule, " "); ok {
					access := map[string]policy.Access{"ro": policy.Read, "rw": policy.Read | policy.Write}[kind]
					r.Paths = append(r.Paths, add(access, path, "--"+kind))
				}
			}
			if c.socket != "" {
				s := add(0, c.socket, "--unix")
				if c.socket != "/tmp/s" {
					s.Mode = fs.ModeSocket
				}
				r.Net.Unix = []resolve.Path{s}
			}
			caps := canMount()
			if c.caps != nil {
				c.caps(&caps)
			}
			p := NewPlan(r, caps, h, c.opts)
			if got := tmpText(p); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			layer := ""
			for _, l := range p.Layers() {
				if l.Name == "tmp" {
					layer = l.Detail
				}
			}
			if !strings.Contains(layer, c.why) || (layer == "") != (r.TempDir == "" || strings.Contains(c.name, "directory is denied")) {
				t.Errorf("layer %q", layer)
			}
		})
	}
}

// tmpText returns which directories for temporary files are private, and what stays in them.
func tmpText(p *Plan) string {
	if p.Mounts == nil {
		return ""
	}
	var out []string
	for _, d := range p.Mounts.Private {
		if d.Kind != "tmpfs" || d.Path == mounts.ShmDir {
			continue
		}
		var in []string
		for _, b := range d.Back {
			in = append(in, b.Path)
		}
		for _, b := range d.Made {
			if b.To != "" {
				in = append(in, b.Path+"->"+b.To)
			}
		}
		out = append(out, fmt.Sprintf("%s%v", d.Path, in))
	}
	return strings.Join(out, " ")
}
