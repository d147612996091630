package policy

import (
	"errors"
	"reflect"
	"strings"
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
			Deny: []Named{{Value: "**/.env", Origin: at(7, 9)}, {Value: ".git/hooks", Origin: at(7, 20)}},
			System: System{
				Executable: []Rule{{Path: "/usr", Access: Read | Exec, Origin: at(9, 15)}, {Path: "/bin", Access: Read | Exec, Origin: at(9, 23)}},
				ReadOnly:   []Rule{},
				ReadWrite:  []Rule{{Path: "/dev/null", Access: Read | Write, Origin: at(11, 15)}},
			},
		},
		Net: Net{
			Allow:      Named{Value: "true", Origin: at(13, 9)},
			ConnectTCP: []Port{{443, at(14, 16)}, {80, at(14, 21)}},
			BindTCP:    []Port{},
			Unix:       []Named{{Value: "$SSH_AUTH_SOCK", Origin: at(16, 9)}},
		},
		Env: Env{
			Mode:  Named{Value: EnvSanitized, Origin: at(18, 8)},
			Allow: []Named{{Value: "CARGO_*", Origin: at(19, 10)}},
			Set:   []Named{{Name: "RUST_BACKTRACE", Value: "1", Origin: at(20, 9)}},
		},
		Limits: Limits{Timeout: Limit{int64(10 * time.Minute), at(22, 11)}, MaxOutput: Limit{10 << 20, at(23, 14)}},
		Linux:  &Policy{FS: FS{Rules: []Rule{{Path: "/proc", Access: Read, Origin: at(25, 10)}}}},
		MacOS:  &Policy{Net: Net{Allow: Named{Value: "false", Origin: at(27, 9)}}},
	}
	got := mustTOML(t, fullTOML)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	fromJSON, err := Decode("p.json", []byte(fullJSON))
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
		{"a preset's links", "fs.links = {a = '/'}", `1:4: unknown key "links" in [fs]: the keys are ro, rox, rw, rw_noexec, deny, home, writes, system`},
		{"a preset's copies", "[linux.fs]\ncopies = {a = '/'}", `2:1: unknown key "copies" in [linux.fs]`},
		{"a preset's create", "fs.create = ['/']", `1:4: unknown key "create" in [fs]`},
		{"a preset's closed files", "[[closed]]\npath = '/'", `1:3: unknown key "closed" at the top level`},
		{"a key with a dot", "\"fs.system\" = {read_only = ['/']}", `1:1: unknown key "fs.system" at the top level`},
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
		{"huge port", "net.bind_tcp = [99999999999999999999]", "1:17: decimal number is too large"},
		{"leading zero", "net.bind_tcp = [0443]", "1:17: integers cannot have leading zeroes"},
		{"empty path", "fs.ro = ['']", "1:10: an empty path"},
		{"NUL in path", `fs.ro = ["a\u0000b"]`, "1:10: path \"a\\x00b\" has a control character"},
		{"newline in path", `fs.ro = ["a\nb"]`, "has a control character"},
		{"C1 control in path", `fs.ro = ["a\u0085b"]`, "has a control character"},
		{"replacement character", "fs.ro = ['a\uFFFD']", "has U+FFFD"},
		{"no way to write", "[fs]\nwrites = 'later'", `2:10: "later" must be "try" or "direct"`},
		{"a switch to write", "fs.writes = true", "1:13: fs.writes must be a string, not a boolean"},
		{"other user's home", "fs.ro = ['~root/x']", "1:10: path \"~root/x\": another user's home"},
		{"lone dollar", "fs.ro = ['a$']", `1:10: path "a$": "$" without a variable's name`},
		{"open brace", "fs.ro = ['${HOME']", `"$" without a variable's name`},
		{"digit variable", "fs.ro = ['$1']", `"$" without a variable's name`},
		{"empty denial", "fs.deny = ['']", "1:12: an empty path"},
		{"negated denial", "fs.deny = ['!x']", "denials cannot be taken back"},
		{"braces", "fs.deny = ['*.{pem,key}']", "braces are not known"},
		{"a class of POSIX", "fs.deny = ['key[[:digit:]]']", `classes such as "[:alpha:]" are not known`},
		{"braces beside a variable", "fs.deny = ['{a,b}$X']", `"{a,b}$X": braces are not known`},
		{"open class", "fs.deny = ['[ab']", `"[" without "]"`},
		{"empty range", "fs.deny = ['[z-a]']", "the range z-a is empty"},
		{"stars in a name", "fs.deny = ['**.pem']", `"**" must stand alone`},
		{"bad mode", "env.mode = 'clean'", `1:12: unknown environment mode "clean"`},
		{"bad variable", "env.allow = ['A B']", `1:14: variable name "A B" has ' '`},
		{"variable with =", "env.set = { 'A=B' = 'x' }", `1:13: variable name "A=B" has '='`},
		{"variable with digit", "env.set.1A = 'x'", `1:9: variable name "1A" starts with a digit`},
		{"NUL in value", `env.set.A = "x\u0000"`, "1:13: a variable's value has a NUL"},
		{"bad glob of names", "env.allow = ['A[']", `"[" without "]"`},
		{"bad preset", "presets = ['../x']", `1:12: unknown preset "../x"`},
		{"bad time", "limits.timeout = 'soon'", `1:18: bad time "soon": a time is a number of seconds, or one with a unit`},
		{"negative time", "limits.timeout = '-1s'", `bad time "-1s"`},
		{"negative number", "limits.timeout = -1", `bad time "-1"`},
		{"bad size", "limits.max_output = '10 MB'", `1:21: bad size "10 MB"`},
		{"large size", "limits.max_output = '9999999999GiB'", `bad size "9999999999GiB": the size is too large`},
		{"negative size", "limits.max_output = -5", `bad size "-5"`},
		{"duplicate key", "[fs]\nro = []\nro = []", "3:1: key ro is already defined"},
		{"duplicate table", "[fs]\n[net]\n[fs]", "3:2: table fs already exists"},
		{"table over dotted", "fs.ro = []\n[fs]", "2:2: table fs already exists"},
		{"dotted over table", "[linux.fs]\nro = []\n[linux]\nfs.rw = []", "4:1: key fs is already defined"},
		{"closed inline table", "net = { allow = true }\nnet.bind_tcp = [1]", "2:1: key net is already defined"},
		{"inline table reopened", "net = { allow = true }\n[net]", "2:2: key net should be a table"},
		{"table in an inline table", "linux = { net = {} }\n[linux.net.x]", "2:2: key linux already exists"},
		{"table below an inline table", "linux = {}\n[linux.net]\nallow = true", "2:2: key linux already exists"},
		{"key of a list", "fs.ro = []\n[[fs.ro]]\npath = '/'", "2:3: key ro already exists"},
		{"syntax", "[fs\nro = []", "1:4: expected ']' to close table name"},
		{"syntax after errors", "x = 1\n[fs]\nro = [", "unknown key \"x\""},
		{"column in characters", "fs.ro = ['äöü', '日本', 3]", "1:23: an entry of fs.ro"},
		{"CRLF", "[fs]\r\nro = 1\r\n", "2:6: fs.ro must be a list"},
		{"NUL in file", "fs.ro = []\n\x00", "2:1: "},
		{"a byte order mark", "\xef\xbb\xbffs.ro = []", "1:1: the character U+FEFF"},
		{"not UTF-8", "fs.ro = ['\xff']", "1:11: invalid UTF-8"},
		{"deep", "presets = " + strings.Repeat("[", 50) + strings.Repeat("]", 50), "nested too deeply"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Decode("p.toml", []byte(tt.toml))
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
		{"duplicate", `{"fs": {"ro": [], "ro": ["/"]}}`, "p.json:1:19: key ro is already defined"},
		{"duplicate, escaped", `{"fs": {"ro": [], "\u0072o": ["/"]}}`, "p.json:1:19: key ro is already defined"},
		{"wrong case", `{"FS": {}}`, `p.json:1:2: unknown key "FS"`},
		{"null list", `{"fs": {"ro": null}}`, "p.json:1:15: fs.ro must be a list, not "},
		{"float port", `{"net": {"connect_tcp": [443.0]}}`, "p.json:1:26: an entry of net.connect_tcp must be an integer"},
		{"exponent", `{"net": {"connect_tcp": [4e2]}}`, "p.json:1:26: an entry of net.connect_tcp must be an integer"},
		{"lone surrogate", `{"fs": {"ro": ["\ud800"]}}`, "p.json:1:16: path \"\ufffd\" has U+FFFD"},
		{"deep", `{"presets": ` + strings.Repeat(`[`, 40) + strings.Repeat(`]`, 40) + `}`, "nested too deeply"},
		{"several", "{\"a\": 1,\n \"net\": {\"allow\": 1, \"bind_tcp\": [0]}}", "p.json:1:2: unknown key \"a\" at the top level: the keys are presets, fs, net, env, limits, process, guard, audit, linux, macos\np.json:2:19: net.allow must be a boolean, not an integer\np.json:2:35: port 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Decode("p.json", []byte(tt.json))
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
