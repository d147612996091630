package seatbelt_test

import (
	"strings"
	"testing"
)

// TestOracle has what others measured or read on macOS. The model must answer the same as each
// row.
func TestOracle(t *testing.T) {
	const v = "(version 1)"
	for _, c := range []struct {
		name    string
		profile string
		op      string
		target  Target
		want    bool
	}{
		{"a leaf's allow stands against the wildcard's later deny",
			`(deny default)(allow file-read-data (subpath "/"))(deny file-read* (literal "/p/.env"))`,
			"file-read-data", Target{Path: "/p/.env"}, true},
		{"the leaf's deny refuses",
			`(deny default)(allow file-read-data (subpath "/"))(deny file-read-data (literal "/p/.env"))`,
			"file-read-data", Target{Path: "/p/.env"}, false},
		{"a leaf's allow stands against the wildcard's earlier deny",
			`(allow default)(deny file-write* (subpath "/p"))(allow file-write-data (literal "/p/x"))`,
			"file-write-data", Target{Path: "/p/x"}, true},
		{"a leaf's deny refuses before the wildcard's allow",
			`(deny default)(deny file-write-unlink (literal "/p/x"))(allow file-write* (subpath "/p"))`,
			"file-write-unlink", Target{Path: "/p/x"}, false},
		{"a leaf's deny refuses after the wildcard's allow",
			`(deny default)(allow file-write* (subpath "/p"))(deny file-write-unlink (literal "/p/x"))`,
			"file-write-unlink", Target{Path: "/p/x"}, false},
		{"the other leaves follow the wildcard",
			`(deny default)(allow file-write* (subpath "/p"))(deny file-write-unlink (literal "/p/x"))`,
			"file-write-data", Target{Path: "/p/x"}, true},
		{"a later rule without filter does not outrank one with",
			`(deny default)(deny network-outbound (literal "/s"))(allow network-outbound)`,
			"network-outbound", Target{Path: "/s"}, false},
		{"but decides for the rest",
			`(deny default)(deny network-outbound (literal "/s"))(allow network-outbound)`,
			"network-outbound", Target{Proto: "tcp", Port: 80}, true},
		{"filtered allow, bare deny, allow default: the filter wins",
			`(allow file-write* (subpath "/p"))(deny file-write*)(allow default)`,
			"file-write-data", Target{Path: "/p/x"}, true},
		{"filtered allow, bare deny, allow default: the bare deny holds",
			`(allow file-write* (subpath "/p"))(deny file-write*)(allow default)`,
			"file-write-data", Target{Path: "/q"}, false},
		{"filtered allow, bare deny, allow default: the rest is allowed",
			`(allow file-write* (subpath "/p"))(deny file-write*)(allow default)`,
			"file-read-data", Target{Path: "/q"}, true},
		{"allow default first works as well",
			`(allow default)(deny file-write* (subpath "/"))(allow file-write* (subpath "/p"))`,
			"file-write-create", Target{Path: "/p/x"}, true},
		{"of one operation the later rule wins: allow",
			`(deny default)(deny file-read* (subpath "/p"))(allow file-read* (literal "/p/x"))`,
			"file-read-data", Target{Path: "/p/x"}, true},
		{"of one operation the later rule wins: deny",
			`(deny default)(allow file-read* (literal "/p/x"))(deny file-read* (subpath "/p"))`,
			"file-read-data", Target{Path: "/p/x"}, false},
		{"the more specific path does not win",
			`(deny default)(deny file-read* (literal "/p/x"))(allow file-read* (subpath "/p"))`,
			"file-read-data", Target{Path: "/p/x"}, true},
		{"deny file* leaves file-clone", `(allow default)(deny file*)`, "file-clone", Target{Path: "/x"}, true},
		{"deny file* leaves file-test-existence", `(allow default)(deny file*)`, "file-test-existence", Target{Path: "/x"}, true},
		{"deny fs-snapshot* leaves fs-snapshot-mount", `(allow default)(deny fs-snapshot*)`, "fs-snapshot-mount", Target{Path: "/x"}, true},
		{"the exact name is denied", `(allow default)(deny fs-snapshot-mount)`, "fs-snapshot-mount", Target{Path: "/x"}, false},
		{"deny default leaves process-info*",
			`(deny default)(allow process-info* (target same-sandbox))`, "process-info-pidinfo", Target{Process: "others"}, true},
		{"a deny before it is needed",
			`(deny default)(deny process-info*)(allow process-info* (target same-sandbox))`, "process-info-pidinfo", Target{Process: "others"}, false},
		{"network-bind is below network-inbound",
			`(deny default)(allow network-inbound (local tcp "*:80"))`, "network-bind", Target{Proto: "tcp", Port: 80, Local: true}, true},
		{"every local address is localhost",
			`(deny default)(allow network-inbound (local tcp "localhost:80"))`, "network-bind", Target{Proto: "tcp", Port: 80, Local: true, Host: "192.0.2.1"}, true},
		{"remote ip leaves sockets in the file system closed",
			`(deny default)(allow network-outbound (remote ip))`, "network-outbound", Target{Path: "/var/run/docker.sock"}, false},
		{"a subpath is its own root", `(deny default)(allow file-read* (subpath "/p"))`, "file-read-data", Target{Path: "/p"}, true},
		{"a subpath ends at an element", `(deny default)(allow file-read* (subpath "/p"))`, "file-read-data", Target{Path: "/pp"}, false},
		{"a parameter", `(deny default)(allow file-read* (subpath (param "P")))`, "file-read-data", Target{Path: "/param/x"}, true},
		{"what a guard skips does not count", `(deny default)(if (defined? 'no-such-thing) (allow file-read*))`, "file-read-data", Target{Path: "/x"}, false},
	} {
		p, err := Compile(v+c.profile, MacOS26, map[string]string{"P": "/param"})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := p.Decide(c.op, c.target); got.Allowed != c.want {
			t.Errorf("%s: %s on %+v: %+v", c.name, c.op, c.target, got)
		}
	}
}

// TestRefused has what macOS' compiler was seen to refuse.
func TestRefused(t *testing.T) {
	long := strings.Repeat("x", 256)
	for _, c := range []struct{ profile, want string }{
		{`(deny default)`, "no version specified"},
		{`(version 1)(allow file-read* (subpath "/tmp/"))`, "subpaths must not end with a slash"},
		{`(version 1)(allow file-read* (path-ancestors "/"))`, "path-ancestors"},
		{`(version 1)(allow network-outbound (remote tcp "127.0.0.1:80"))`, "host must be * or localhost"},
		{`(version 1)(allow network-outbound (remote tcp "localhost:0"))`, "port"},
		{`(version 1)(allow network-outbound (remote tcp "*:70000"))`, "port"},
		{`(version 1)(allow mach-lookup (subpath "/tmp"))`, "subpath filter does not apply to mach-lookup operation"},
		{`(version 1)(allow file-read* (global-name "x"))`, "global-name filter does not apply to file-read* operation"},
		{`(version 1)(deny file-read* (with no-log) (with no-log))`, "duplicate modifier"},
		{`(version 1)(allow file-read* (with no-log))`, "does not apply to allow"},
		{`(version 1)(deny file-graft)`, "unbound variable: file-graft"},
		{`(version 1)(deny file-raed*)`, "unbound variable: file-raed*"},
		{`(version 1)(allow file-read* (sub-path "/"))`, "unbound variable: sub-path"},
		{`(version 1)(allow network-outbound (remote unix-socket (literal "/a") (literal "/b")))`, "one path filter"},
		{`(version 1)(allow file-read* (regex "a{2,3}"))`, "counted repetition"},
		{`(version 1)(allow file-read* (literal "` + long + `"))`, "error reading string"},
		{`(version 1)(allow file-read* (subpath "/a")`, "ends inside a form"},
		{`(version 1)(allow file-read* (subpath "/a")))`, "closing parenthesis too many"},
		{`(version 1)(allow file-read* (subpath "/a`, "ends inside a string"},
		{`(version 1)(allow file-read* (subpath /a))`, "one string"},
		{`(version 1)(allow (subpath "/a"))`, "without operation"},
		{`(version 3)`, "version 1"},
	} {
		_, err := Compile(c.profile, MacOS15, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: %v, want %q", c.profile, err, c.want)
		}
	}
}

// TestStrings checks that the reader knows only the escapes that exist. Text from Go's %q or
// JSON reads as something else.
func TestStrings(t *testing.T) {
	for in, want := range map[string]string{
		`"a\"b\\c"`:              `a"b\c`,
		`"\u202e"`:               `u202e`,
		`"\x41"`:                 `A`,
		"\"\u202e e\u0301 (;)\"": "\u202e e\u0301 (;)",
	} {
		ns, err := readAll(in)
		if err != nil || len(ns) != 1 || ns[0].text != want {
			t.Errorf("%s: %+v, %v; want %q", in, ns, err, want)
		}
	}
}

// TestGuard compiles one profile for a release that knows a name and for one
// that does not.
func TestGuard(t *testing.T) {
	const text = `(version 1)(allow default)(if (defined? 'file-graft) (deny file-graft))`
	if _, err := Compile(text, MacOS14, nil); err != nil {
		t.Error(err)
	}
	p, err := Compile(text, MacOS26, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Allowed("file-graft", Target{Path: "/x"}) {
		t.Error("the guarded rule is missing")
	}
}
