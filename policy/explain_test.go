package policy

import (
	"strings"
	"testing"
)

func TestAllowed(t *testing.T) {
	h := tableHost(map[string]string{
		"/w/src/main.go": "file", "/w/out": "-> /data", "/data/x": "file", "/w/.env": "file", "/w/sub/.env": "file", "/etc/passwd": "file",
		"/usr/bin/go": "file", "/home/u/.ssh/id": "file", "/w/loop": "-> loop", "/dev/null": "device", "/w/dir": "-> /usr/bin",
	})
	r := mustResolve(t, mustTOML(t, `
[fs]
ro = ["/etc"]
rox = ["/usr"]
rw_noexec = ["."]
rw = ["/dev/null"]
deny = ["**/.env", "~/.ssh", "hooks"]
`), h)
	for _, tt := range []struct {
		path    string
		access  Access
		allowed bool
		reason  string
	}{
		{"src/main.go", Read, true, `/w/src/main.go is allowed by "rw_noexec ." (p.toml:5:14)`},
		{"src/main.go", Write, true, "allowed by"},
		{"src/main.go", Exec, false, "no rule allows executing /w/src/main.go"},
		{"src/main.go", Read | Exec, false, `"rw_noexec ." (p.toml:5:14) allows reading /w/src/main.go, not executing`},
		{"src/new/file", Write, true, "/w/src/new/file is allowed by"},
		{"/etc/passwd", Read, true, `"ro /etc" (p.toml:3:7)`},
		{"/etc/passwd", Write, false, "no rule allows writing"},
		{"/etc/new", Write, false, "no rule allows writing"},
		{"/usr/bin/go", Read | Exec, true, `"rox /usr"`},
		{"dir/go", Exec, true, "/usr/bin/go is allowed"},
		{"dir/../bin/go", Exec, true, "/usr/bin/go is allowed"}, // ".." as in the kernel
		{"out/x", Read, false, "no rule allows reading /data/x"},
		{".env", Read, false, `/w/.env is denied by "**/.env" (p.toml:7:9)`},
		{"sub/.env", Read, false, "is denied by"},
		{"sub/deeper/.env/x", Read, false, "is denied by"},
		{"hooks/pre-commit", Write, false, `is denied by "hooks"`},
		{"~/.ssh/id", Read, false, `is denied by "~/.ssh"`},
		{"/home/u/other", Read, false, "no rule allows"},
		{"/dev/null", Write, true, "allowed by"},
		{"/dev/null/x", Write, false, "no rule allows"},
		{"loop", Read, false, "loop cannot be resolved"},
		{"/", Read, false, "no rule allows"},
		{"src/main.go", 0, false, "no rule allows"},
	} {
		v := r.Allowed(tt.path, tt.access)
		if v.Allowed != tt.allowed || !strings.Contains(v.Reason, tt.reason) {
			t.Errorf("%s %s: %v, %s; want %v, %s", tt.access, tt.path, v.Allowed, v.Reason, tt.allowed, tt.reason)
		}
		if v.Allowed && v.Rule == nil || v.Deny != nil && v.Origin != v.Deny.Deny.Origin {
			t.Errorf("%s %s: %+v", tt.access, tt.path, v)
		}
	}
	nested := mustResolve(t, mustTOML(t, "fs.ro = ['/usr', '/w/src']\nfs.rox = ['/usr/bin']\nfs.rw = ['.']"), h)
	for _, tt := range []struct {
		path   string
		access Access
		by     string
	}{{"/usr/bin/go", Read, "/usr/bin"}, {"/usr/bin/go", Read | Exec, "/usr/bin"}, {"/w/src/main.go", Read, "/w/src"}, {"/w/src/main.go", Read | Write, "/w"}} {
		if v := nested.Allowed(tt.path, tt.access); !v.Allowed || v.Rule.Path != tt.by {
			t.Errorf("%s %s is decided by %+v, want %s", tt.access, tt.path, v.Rule, tt.by)
		}
	}
	byHand := &Resolved{Dir: "/w", Paths: []Path{{Path: "/", Access: Read, Mode: 1 << 31}}}
	if v := byHand.Allowed("x/../y", Read); !v.Allowed || v.Path != "/w/y" {
		t.Errorf("without a host: %+v", v)
	}
}

func TestConnect(t *testing.T) {
	h := tableHost(nil)
	for _, tt := range []struct {
		toml          string
		connect, bind bool
		reason        string
	}{
		{"", true, true, "the network is open (default)"},
		{"net.allow = false", false, false, "there is no network (p.toml:1:13)"},
		{"net.connect_tcp = [443]", true, false, "p.toml:1:20: TCP port 443 may be used to connect"},
		{"net.bind_tcp = [443]", false, true, "only listed TCP ports may be used to connect (p.toml:1:17), not 443"},
	} {
		r := mustResolve(t, mustTOML(t, tt.toml), h)
		c, b := r.Connect(443), r.Bind(443)
		if c.Allowed != tt.connect || b.Allowed != tt.bind || c.Reason != tt.reason {
			t.Errorf("%s: %+v, %+v", tt.toml, c, b)
		}
	}
}
