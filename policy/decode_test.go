package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

const fullTOML = `presets = ["rust", "git"]
[fs]
ro = ["~/.config/git"]
rox = ["~/.local/bin"]
rw = [".", { path = "~/cache", optional = true }]
rw_noexec = ["~/data"]
deny = ["**/.env", ".git/hooks"]
[fs.system]
executable = ["/usr", "/bin"]
read_only = []
read_write = ["/dev/null"]
[net]
allow = true
connect_tcp = [443, 0x50]
bind_tcp = []
unix = ["$SSH_AUTH_SOCK"]
[env]
mode = "sanitized"
allow = ["CARGO_*"]
set = { RUST_BACKTRACE = "1" }
[limits]
timeout = "10m"
max_output = "10MiB"
[linux]
fs.ro = ["/proc"]
[macos.net]
allow = false
`

const fullJSON = `{
  "presets": ["rust", "git"],
  "fs": {
    "ro": ["~/.config/git"], "rox": ["~/.local/bin"],
    "rw": [".", {"path": "~/cache", "optional": true}],
    "rw_noexec": ["~/data"], "deny": ["**/.env", ".git/hooks"],
    "system": {"executable": ["/usr", "/bin"], "read_only": [], "read_write": ["/dev/null"]}
  },
  "net": {"allow": true, "connect_tcp": [443, 80], "bind_tcp": [], "unix": ["$SSH_AUTH_SOCK"]},
  "env": {"mode": "sanitized", "allow": ["CARGO_*"], "set": {"RUST_BACKTRACE": "1"}},
  "limits": {"timeout": "10m", "max_output": 10485760},
  "linux": {"fs": {"ro": ["/proc"]}},
  "macos": {"net": {"allow": false}}
}`

// TestDecode checks a file with every key, with the place of each.
func TestDecode(t *testing.T) {
	at := func(line, col int) Origin { return Origin{"p.toml", line, col} }
	want := &Policy{
		Presets: []Named{{Value: "rust", Origin: at(1, 12)}, {Value: "git", Origin: at(1, 20)}},
		FS: FS{
			Rules: []Rule{
				{Path: "~/.config/git", Access: Read, Origin: at(3, 7)},
				{Path: "~/.local/bin", Access: Read | Exec, Origin: at(4, 8)},
				{Path: ".", Access: Read | Write | Exec, Origin: at(5, 7)},
				{Path: "~/cache", Access: Read | Write | Exec, Optional: true, Origin: at(5, 12)},
				{Path: "~/data", Access: Read | Write, Origin: at(6, 14)},
			},
			Deny: []Deny{{"**/.env", at(7, 9)}, {".git/hooks", at(7, 20)}},
			System: System{
				Executable: []Rule{{Path: "/usr", Access: Read | Exec, Origin: at(9, 15)}, {Path: "/bin", Access: Read | Exec, Origin: at(9, 23)}},
				ReadOnly:   []Rule{},
				ReadWrite:  []Rule{{Path: "/dev/null", Access: Read | Write, Origin: at(11, 15)}},
			},
		},
		Net: Net{
			Allow:      &Flag{true, at(13, 9)},
			ConnectTCP: []Port{{443, at(14, 16)}, {80, at(14, 21)}},
			BindTCP:    []Port{},
			Unix:       []Named{{Value: "$SSH_AUTH_SOCK", Origin: at(16, 9)}},
		},
		Env: Env{
			Mode: EnvSanitized, From: at(18, 8),
			Allow: []Named{{Value: "CARGO_*", Origin: at(19, 10)}},
			Set:   []Var{{"RUST_BACKTRACE", "1", at(20, 9)}},
		},
		Limits: Limits{Timeout: 10 * time.Minute, TimeoutFrom: at(22, 11), MaxOutput: 10 << 20, MaxOutputFrom: at(23, 14)},
		Linux:  &Policy{FS: FS{Rules: []Rule{{Path: "/proc", Access: Read, Origin: at(25, 10)}}}},
		MacOS:  &Policy{Net: Net{Allow: &Flag{false, at(27, 9)}}},
	}
	got := mustTOML(t, fullTOML)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	fromJSON, err := DecodeJSON("p.json", strings.NewReader(fullJSON))
	if err != nil {
		t.Fatal(err)
	}
	if fromJSON.Hash() != want.Hash() {
		t.Errorf("JSON means %q\nTOML means %q", fromJSON.statements(""), want.statements(""))
	}
	if o := fromJSON.FS.Rules[2].Origin; o != (Origin{"p.json", 5, 12}) {
		t.Errorf("the origin of \".\" is %v", o)
	}
}

// TestDecodeErrors has one row for each thing that can be wrong. The place
// comes first, then part of the message.
func TestDecodeErrors(t *testing.T) {
	for _, tt := range []struct{ name, toml, want string }{
		{"unknown key", "reed = 1", `1:1: unknown key "reed" at the top level`},
		{"unknown table", "[file]\nro = []", `1:2: unknown key "file" at the top level`},
		{"unknown key in fs", "[fs]\nread = []", `2:1: unknown key "read" in [fs]`},
		{"unknown key in system", "[fs.system]\nro = []", `2:1: unknown key "ro" in [fs.system]`},
		{"unknown key in linux", "[linux.net]\nports = []", `2:1: unknown key "ports" in [linux.net]`},
		{"key in wrong case", "[fs]\nRO = []", `2:1: unknown key "RO" in [fs]`},
		{"system within system", "[linux.macos.fs]\nro = []", `1:8: unknown key "macos" in [linux]`},
		{"unknown key in entry", "fs.ro = [{path = '/', opt = true}]", `1:23: unknown key "opt" in [fs.ro]`},
		{"entry without path", "fs.ro = [{optional = true}]", "1:10: an entry of fs.ro without a path"},
		{"string for list", "[fs]\nro = '/usr,/tmp'", "2:6: fs.ro must be a list, not a string"},
		{"number in list", "[fs]\nro = ['/', 1]", "2:12: an entry of fs.ro must be a string, not an integer"},
		{"list for table", "fs = []", "1:1: fs must be a table, not a list"},
		{"float", "net.connect_tcp = [4.5]", "1:20: an entry of net.connect_tcp must be an integer"},
		{"string port", "net.connect_tcp = ['443']", "1:20: an entry of net.connect_tcp must be an integer, not a string"},
		{"date", "limits.timeout = 1979-05-27", "1:18: limits.timeout must be a string"},
		{"string for boolean", "net.allow = 'yes'", "1:13: net.allow must be a boolean, not a string"},
		{"port 70000", "net.connect_tcp = [443, 70000]", "1:25: port 70000 is not between 1 and 65535"},
		{"port 0", "net.bind_tcp = [0]", "1:17: port 0 is not between"},
		{"negative port", "net.bind_tcp = [-1]", "1:17: port -1 is not between"},
		{"huge port", "net.bind_tcp = [99999999999999999999]", "1:17: port 99999999999999999999 is not between"},
		{"leading zero", "net.bind_tcp = [0443]", "1:17: integers cannot have leading zeroes"},
		{"empty path", "fs.ro = ['']", "1:10: an empty path"},
		{"NUL in path", `fs.ro = ["a\u0000b"]`, "1:10: path \"a\\x00b\" has a control character"},
		{"newline in path", `fs.ro = ["a\nb"]`, "has a control character"},
		{"C1 control in path", `fs.ro = ["a\u0085b"]`, "has a control character"},
		{"replacement character", "fs.ro = ['a\uFFFD']", "has U+FFFD"},
		{"other user's home", "fs.ro = ['~root/x']", "1:10: path \"~root/x\": another user's home"},
		{"lone dollar", "fs.ro = ['a$']", `1:10: path "a$": "$" without a variable's name`},
		{"open brace", "fs.ro = ['${HOME']", `"$" without a variable's name`},
		{"digit variable", "fs.ro = ['$1']", `"$" without a variable's name`},
		{"long path", "fs.ro = ['" + strings.Repeat("x", 5000) + "']", "1:10: a path of 5000 bytes"},
		{"empty denial", "fs.deny = ['']", "1:12: an empty path"},
		{"negated denial", "fs.deny = ['!x']", "denials cannot be taken back"},
		{"braces", "fs.deny = ['*.{pem,key}']", "braces are not known"},
		{"open class", "fs.deny = ['[ab']", `"[" without "]"`},
		{"empty range", "fs.deny = ['[z-a]']", "the range z-a is empty"},
		{"stars in a name", "fs.deny = ['**.pem']", `"**" must stand alone`},
		{"up after wildcard", "fs.deny = ['*/../x']", "can never match"},
		{"bad mode", "env.mode = 'clean'", `1:12: unknown environment mode "clean"`},
		{"bad variable", "env.allow = ['A B']", `1:14: variable name "A B" has ' '`},
		{"variable with =", "env.set = { 'A=B' = 'x' }", `1:13: variable name "A=B" has '='`},
		{"variable with digit", "env.set.1A = 'x'", `1:9: variable name "1A" starts with a digit`},
		{"NUL in value", `env.set.A = "x\u0000"`, "1:13: a variable's value has a NUL"},
		{"bad glob of names", "env.allow = ['A[']", `"[" without "]"`},
		{"bad preset", "presets = ['../x']", `1:12: bad preset name "../x"`},
		{"no unit", "limits.timeout = '10'", `1:18: duration "10" has no unit: write 10s`},
		{"bad duration", "limits.timeout = 'soon'", `bad duration "soon"`},
		{"negative duration", "limits.timeout = '-1s'", `negative duration "-1s"`},
		{"bad size", "limits.max_output = '10 MB'", `1:21: bad size "10 MB"`},
		{"large size", "limits.max_output = '9999999999GiB'", `size "9999999999GiB" is too large`},
		{"negative size", "limits.max_output = -5", `bad size "-5"`},
		{"duplicate key", "[fs]\nro = []\nro = []", "3:1: ro is given twice"},
		{"duplicate table", "[fs]\n[net]\n[fs]", "3:2: fs is given twice"},
		{"table over dotted", "fs.ro = []\n[fs]", "2:2: fs is given twice"},
		{"dotted over table", "[linux.fs]\nro = []\n[linux]\nfs.rw = []", "4:1: fs is given twice"},
		{"closed inline table", "net = { allow = true }\nnet.bind_tcp = [1]", "2:1: net is given twice"},
		{"inline table reopened", "net = { allow = true }\n[net]", "2:2: net is given twice"},
		{"key of a list", "fs.ro = []\n[[fs.ro]]\npath = '/'", "2:6: ro is given twice"},
		{"syntax", "[fs\nro = []", "1:4: expected ']' to close table name"},
		{"syntax after errors", "x = 1\n[fs]\nro = [", "unknown key \"x\""},
		{"column in characters", "fs.ro = ['äöü', '日本', 3]", "1:23: an entry of fs.ro"},
		{"CRLF", "[fs]\r\nro = 1\r\n", "2:6: fs.ro must be a list"},
		{"NUL in file", "fs.ro = []\n\x00", "2:1: a NUL byte"},
		{"not UTF-8", "fs.ro = ['\xff']", "1:11: invalid UTF-8"},
		{"deep", "presets = " + strings.Repeat("[", 50) + strings.Repeat("]", 50), "nested too deeply"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := DecodeTOML("p.toml", strings.NewReader(tt.toml))
			if err == nil || p != nil {
				t.Fatalf("got %+v, %v", p, err)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if strings.HasPrefix(tt.want, "1:") || strings.HasPrefix(tt.want, "2:") {
				if !strings.HasPrefix(err.Error(), "p.toml:"+tt.want) {
					t.Errorf("not the first error: %v", err)
				}
			}
			var es Errors
			var e *Error
			if !errors.As(err, &es) || !errors.As(err, &e) || e.Code == "" || e.Origin.Source != "p.toml" {
				t.Errorf("%T is not Errors of *Error with codes", err)
			}
		})
	}
}

func TestDecodeJSONErrors(t *testing.T) {
	for _, tt := range []struct{ name, json, want string }{
		{"empty", "", "p.json:1:1: unexpected end of JSON input"},
		{"not a table", "[]", "p.json:1:1: a policy must be a table, not a list"},
		{"null", "null", "p.json:1:1: a policy must be a table"},
		{"trailing data", "{}\n{}", "p.json:2:1: invalid character '{' after top-level value"},
		{"trailing comma", `{"fs": {},}`, "p.json:1:11: invalid character '}'"},
		{"comment", "// x\n{}", "p.json:1:1: invalid character '/'"},
		{"duplicate", `{"fs": {"ro": [], "ro": ["/"]}}`, "p.json:1:19: ro is given twice"},
		{"duplicate, escaped", `{"fs": {"ro": [], "\u0072o": ["/"]}}`, "p.json:1:19: ro is given twice"},
		{"wrong case", `{"FS": {}}`, `p.json:1:2: unknown key "FS"`},
		{"null list", `{"fs": {"ro": null}}`, "p.json:1:15: fs.ro must be a list, not "},
		{"float port", `{"net": {"connect_tcp": [443.0]}}`, "p.json:1:26: an entry of net.connect_tcp must be an integer"},
		{"exponent", `{"net": {"connect_tcp": [4e2]}}`, "p.json:1:26: an entry of net.connect_tcp must be an integer"},
		{"lone surrogate", `{"fs": {"ro": ["\ud800"]}}`, "p.json:1:16: path \"\ufffd\" has U+FFFD"},
		{"deep", `{"presets": ` + strings.Repeat(`[`, 40) + strings.Repeat(`]`, 40) + `}`, "nested too deeply"},
		{"several", "{\"a\": 1,\n \"net\": {\"allow\": 1, \"bind_tcp\": [0]}}", "p.json:1:2: unknown key \"a\" at the top level\np.json:2:19: net.allow must be a boolean, not an integer\np.json:2:35: port 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := DecodeJSON("p.json", strings.NewReader(tt.json))
			if err == nil || p != nil {
				t.Fatalf("got %+v, %v", p, err)
			}
			want := tt.want
			if !strings.Contains(err.Error(), want) {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

// TestDecodeAllErrors checks that one look is enough, and that a flood is cut.
func TestDecodeAllErrors(t *testing.T) {
	_, err := DecodeTOML("p.toml", strings.NewReader("a = 1\n[net]\nconnect_tcp = [0, 1, 70000]\nallow = 1\n[fs]\nro = ['', 2]\n[x]\n"))
	var es Errors
	if !errors.As(err, &es) || len(es) != 7 {
		t.Errorf("got %d errors: %v", len(es), err)
	}
	for i := 1; i < len(es); i++ {
		if a, b := es[i-1].Origin, es[i].Origin; a.Line > b.Line || a.Line == b.Line && a.Column >= b.Column {
			t.Errorf("%v stands before %v", a, b)
		}
	}
	_, err = DecodeTOML("p.toml", strings.NewReader(strings.Repeat("fs.x = 1\n", 5000)))
	if !errors.As(err, &es) || len(es) != maxErrors+1 || es[maxErrors].Code != CodeMore {
		t.Errorf("got %d errors, the last one %v", len(es), es[len(es)-1])
	}
}

func TestDecodeLimits(t *testing.T) {
	file := func(n int) string {
		var b strings.Builder
		b.WriteString("fs.ro = [")
		for i := range n {
			fmt.Fprintf(&b, "'/data/%d',", i)
		}
		b.WriteString("]\n")
		return b.String()
	}
	start := time.Now()
	p, err := DecodeTOML("p.toml", strings.NewReader(file(MaxRules)))
	if err != nil || len(p.FS.Rules) != MaxRules {
		t.Errorf("%d rules: %v", MaxRules, err)
	}
	json := `{"fs":{"ro":` + strings.NewReplacer("'", `"`, ",]", "]", "fs.ro = ", "").Replace(file(MaxRules)) + `}}`
	if _, err := DecodeJSON("p.json", strings.NewReader(json)); err != nil {
		t.Errorf("%d rules in one line of JSON: %v", MaxRules, err)
	}
	if d := time.Since(start); d > 3*time.Second {
		t.Errorf("decoding took %v", d)
	}
	if _, err := DecodeTOML("p.toml", strings.NewReader(file(MaxRules+1))); err == nil || !strings.Contains(err.Error(), "more than 10000 rules") {
		t.Errorf("one rule more: %v", err)
	}
	pad := "# " + strings.Repeat("x", MaxFileSize-3) + "\n"
	if _, err := DecodeTOML("p.toml", strings.NewReader(pad)); err != nil {
		t.Errorf("%d bytes: %v", len(pad), err)
	}
	if _, err := DecodeTOML("p.toml", strings.NewReader(pad+"\n")); err == nil || !strings.Contains(err.Error(), "larger than 1048576 bytes") {
		t.Errorf("%d bytes: %v", len(pad)+1, err)
	}
	// Many different keys must not cost the square of their number.
	var b strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&b, "k%d = 1\n", i)
	}
	start = time.Now()
	if _, err := DecodeTOML("p.toml", strings.NewReader(b.String())); err == nil {
		t.Error("60,000 unknown keys are no error")
	}
	if d := time.Since(start); d > 3*time.Second {
		t.Errorf("60,000 unknown keys took %v", d)
	}
}

// TestDecodeFile checks that nothing but a regular file is read, and that
// nothing blocks.
func TestDecodeFile(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		if err := os.WriteFile(in(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("ok.toml", "fs.ro = ['/']")
	write("ok.json", `{"fs": {"ro": ["/"]}}`)
	write("json.toml", `{"fs": {"ro": ["/"]}}`)
	write("large.toml", "")
	if err := os.Truncate(in("large.toml"), 2<<30); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(in("fifo.toml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("loop.toml", in("loop.toml")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ file, want string }{
		{in("ok.toml"), ""},
		{in("ok.json"), ""},
		{in("json.toml"), "json.toml:1:1: "},
		{in("large.toml"), "it has 2147483648 bytes: the most is 1048576"},
		{in("fifo.toml"), "it is a FIFO, not a regular file"},
		{dir, "it is a directory, not a regular file"},
		{"/dev/zero", "it is a device, not a regular file"},
		{in("missing.toml"), "reading the policy: no such file or directory"},
		{in("loop.toml"), "too many levels of symbolic links"},
	} {
		p, err := DecodeFile(tt.file)
		if (p == nil) != (err != nil) || (tt.want == "") != (err == nil) {
			t.Errorf("%s: %+v, %v", tt.file, p, err)
		} else if err != nil && (!strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), tt.file)) {
			t.Errorf("%s: %v, want %q", tt.file, err, tt.want)
		}
	}
	if _, err := DecodeFile(in("missing.toml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
	}
}

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "12": 12, "12B": 12, "1KiB": 1024, "2MiB": 2 << 20, "1GiB": 1 << 30, "3KB": 3000, "3kB": 3000, "5MB": 5e6, "1GB": 1e9} {
		if got, err := ParseSize(s); got != want || err != nil {
			t.Errorf("ParseSize(%q) = %d, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "B", "-1", "1.5MiB", "1 MiB", "1mib", "0x10", "9223372036854775808", "8589934592GiB"} {
		if got, err := ParseSize(s); err == nil {
			t.Errorf("ParseSize(%q) = %d", s, got)
		}
	}
}
