package resolve

import (
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/policy"
)

func TestAllowed(t *testing.T) {
	h := hosttest.Table(map[string]string{
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
		access  policy.Access
		allowed bool
		reason  string
	}{
		{"src/main.go", policy.Read, true, `/w/src/main.go is allowed by "rw_noexec ." (p.toml:5:14)`},
		{"src/main.go", policy.Write, true, "allowed by"},
		{"src/main.go", policy.Exec, false, "no rule allows executing /w/src/main.go"},
		{"src/main.go", policy.Read | policy.Exec, false, `"rw_noexec ." (p.toml:5:14) allows reading /w/src/main.go, not executing`},
		{"src/new/file", policy.Write, true, "/w/src/new/file is allowed by"},
		{"/etc/passwd", policy.Read, true, `"ro /etc" (p.toml:3:7)`},
		{"/etc/passwd", policy.Write, false, "no rule allows writing"},
		{"/etc/new", policy.Write, false, "no rule allows writing"},
		{"/usr/bin/go", policy.Read | policy.Exec, true, `"rox /usr"`},
		{"dir/go", policy.Exec, true, "/usr/bin/go is allowed"},
		{"dir/../bin/go", policy.Exec, true, "/usr/bin/go is allowed"}, // ".." as in the kernel
		{"out/x", policy.Read, false, "no rule allows reading /data/x"},
		{".env", policy.Read, false, `/w/.env is denied by "**/.env" (p.toml:7:9)`},
		{"sub/.env", policy.Read, false, "is denied by"},
		{"sub/deeper/.env/x", policy.Read, false, "is denied by"},
		{"hooks/pre-commit", policy.Write, false, `is denied by "hooks"`},
		{"~/.ssh/id", policy.Read, false, `is denied by "~/.ssh"`},
		{"/home/u/other", policy.Read, false, "no rule allows"},
		{"/dev/null", policy.Write, true, "allowed by"},
		{"/dev/null/x", policy.Write, false, "no rule allows"},
		{"loop", policy.Read, false, "loop cannot be resolved"},
		{"/", policy.Read, false, "no rule allows"},
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
		access policy.Access
		by     string
	}{{"/usr/bin/go", policy.Read, "/usr/bin"}, {"/usr/bin/go", policy.Read | policy.Exec, "/usr/bin"}, {"/w/src/main.go", policy.Read, "/w/src"}, {"/w/src/main.go", policy.Read | policy.Write, "/w"}} {
		if v := nested.Allowed(tt.path, tt.access); !v.Allowed || v.Rule.Path != tt.by {
			t.Errorf("%s %s is decided by %+v, want %s", tt.access, tt.path, v.Rule, tt.by)
		}
	}
	byHand := &Resolved{Dir: "/w", Paths: []Path{{Path: "/", Access: policy.Read, Mode: 1 << 31}}}
	if v := byHand.Allowed("x/../y", policy.Read); !v.Allowed || v.Path != "/w/y" {
		t.Errorf("without a host: %+v", v)
	}
}

func TestConnect(t *testing.T) {
	h := hosttest.Table(nil)
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
		c, b := r.Connect("x.example", 443), r.Bind(443)
		if c.Allowed != tt.connect || b.Allowed != tt.bind || c.Reason != tt.reason {
			t.Errorf("%s: %+v, %+v", tt.toml, c, b)
		}
	}
}
