package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"
	"pgregory.net/rapid"

	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/terminal"
	"github.com/zsbx/zsbx/internal/units"
	"github.com/zsbx/zsbx/policy"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                "plain",
		"tab\tstays":           "tab\tstays",
		"\x1b[31mred":          `\u001b[31mred`,
		"a\u202eb":             `a\u202eb`,
		"grün, 日本, \ufffd":     "grün, 日本, \ufffd",
		"no utf-8: \x9b31mred": `no utf-8: \x9b31mred`,
	} {
		got := terminal.Printable(in)
		if got != want {
			t.Errorf("terminal.Printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestWriteJSON(t *testing.T) {
	const in = "\x1b[1m \u009b1m \u202e \U000e0041 \x7f <a> grün\n\t\"\xff"
	var b strings.Builder
	if err := writeJSON(&b, []string{in}, "  "); err != nil {
		t.Fatal(err)
	}
	const want = "[\n  \"\\u001b[1m \\u009b1m \\u202e \\udb40\\udc41 \\u007f <a> grün\\n\\t\\\"\\udcff\"\n]\n"
	if b.String() != want {
		t.Errorf("got %s, want %s", b.String(), want)
	}
	var back []string
	if err := json.Unmarshal([]byte(b.String()), &back); err != nil || back[0] != strings.ToValidUTF8(in, "\ufffd") {
		t.Errorf("it reads as %q: %v", back, err)
	}
}

func TestQuoteArg(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "a-b/c.d=e": "a-b/c.d=e", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'", "~": "'~'",
		"a\nit's \x1b": `$'a\nit\'s \x1b'`,
		"\x9b":         `$'\x9b'`,
	} {
		if got := shell.Quote(in); got != want {
			t.Errorf("shell.Quote(%q) = %s, want %s", in, got, want)
		}
	}
}

// TestFlagPolicy: flags become rules with their origin, and nothing is lost.
func TestFlagPolicy(t *testing.T) {
	o := &policyFlags{}
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	o.add(&app{}, fs)
	if err := fs.Parse(strings.Fields("--ro a,b --rox /x --rw . --rw-noexec ~/d --deny **/.env --connect-tcp 443 --connect-tcp 65535 --bind-tcp 1 " +
		"--unix /s --env A --env B= --env C=x=y --clean-env --timeout 10 --max-output 1k")); err != nil {
		t.Fatal(err)
	}
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	p := &o.asked
	var rules []string
	for _, r := range p.FS.Rules {
		rules = append(rules, fmt.Sprintf("%s %s %s", r.Origin, r.Access, r.Path))
	}
	want := []string{"--ro ro a,b", "--rox rox /x", "--rw rw .", "--rw-noexec rw_noexec ~/d"}
	if !slices.Equal(rules, want) {
		t.Errorf("rules %q, want %q", rules, want)
	}
	if len(p.FS.Deny) != 1 || len(p.Net.ConnectTCP) != 2 || p.Net.ConnectTCP[1].Number != 65535 || len(p.Net.BindTCP) != 1 || len(p.Net.Unix) != 1 {
		t.Errorf("%+v", p)
	}
	if p.Env.Mode.Value != policy.EnvVars || len(p.Env.Allow) != 1 || len(p.Env.Set) != 2 || p.Env.Set[1].Value != "x=y" {
		t.Errorf("%+v", p.Env)
	}
	if p.Limits.Timeout.Value != int64(10*time.Second) || p.Limits.MaxOutput.Value != 1000 {
		t.Errorf("%+v", p.Limits)
	}
}

// TestPorts: what a conversion to uint16 would wrap is refused.
func TestPorts(t *testing.T) {
	for _, bad := range []string{"0", "65536", "70000", "65979", "-1", "443 ", "0x1bb", "", "4294967739", "18446744073709552059", "https"} {
		if n, err := units.ParsePort(bad); err == nil {
			t.Errorf("%q: %d", bad, n)
		}
	}
}

func TestAim(t *testing.T) {
	for in, want := range map[string]string{"example.org:443": "example.org", "[::1]:80": "[::1]", "/run/x.sock": "", "./s": "", "~/s": ""} {
		q := question{file: in}
		if err := q.aim(in); err != nil || q.act.Host != want || (q.act.Port == 0) != (q.file == in) {
			t.Errorf("%s: %+v, %v", in, q, err)
		}
	}
	for _, bad := range []string{"", "x", ":443", "x:", "x:0", "x:65536", "x:https"} {
		q := question{file: bad}
		if err := q.aim(bad); err == nil {
			t.Errorf("%q: %+v", bad, q)
		}
	}
}

// TestReport: joined errors are reported one by one, each in one line and with its code. Hints
// come last, and each once.
func TestReport(t *testing.T) {
	err := errors.Join(
		usageHint("do this", "first"),
		refusal(supervise.CodePolicy, "do this", "second"),
		policy.Errors{{Origin: policy.Origin{Source: "f", Line: 1, Column: 2}, Code: policy.CodeValue, Msg: "third", Hint: "do that"}},
		errors.New("fourth\nfifth"),
	)
	var b bytes.Buffer
	v := &voice{w: &b}
	if out := v.report(err); out.Status != exitFailed {
		t.Errorf("status %d", out.Status)
	}
	want := "zsbx: error: first\nzsbx: error: second\nzsbx: error: f:1:2: third\nzsbx: error: fourth\\u000afifth\n" +
		"zsbx: hint: do this\nzsbx: hint: do that\n"
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	v.json = true
	v.report(err)
	for _, want := range []string{`"code":"usage","message":"first","hint":"do this"`, `"code":"policy"`, `"code":"bad-value"`, `"line":1`, `"code":"failed"`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in %s", want, b.String())
		}
	}
	b.Reset()
	if out := v.report(status(42)); out.Status != 42 || b.Len() != 0 {
		t.Errorf("status %d, said %q", out.Status, b.String())
	}
}

func TestTable(t *testing.T) {
	var tab table
	tab.section("none")
	tab.section("one")
	tab.row("a", "longer", "x")
	tab.row("bbb", "é")
	tab.row("c", "é\x1b", "y")
	want := "one\n  a    longer  x\n  bbb  é\n  c    é\\u001b  y\n"
	if got := tab.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRootCommand: the tree for one command is a part of the whole tree.
func TestRootCommand(t *testing.T) {
	whole := Root()
	for name := range commands() {
		a := &app{stdout: io.Discard, stderr: io.Discard, say: voice{w: io.Discard}}
		one := newRoot(a, []string{name})
		if len(one.Commands()) != 1 || one.Commands()[0].Name() != name {
			t.Errorf("%s: %d commands", name, len(one.Commands()))
		}
		full, _, err := whole.Find([]string{name})
		if err != nil || full.Name() != name || full.Long == "" || full.Example == "" {
			t.Errorf("%s: %v, or no text", name, err)
		}
	}
}

// TestCommandLine: a process can't control a terminal through its name.
func TestCommandLine(t *testing.T) {
	for want, argv := range map[string][]string{
		"sleep 10":             {"sleep", "10"},
		"sh -c 'a && b' ''":    {"sh", "-c", "a && b", ""},
		`'it'\''s'`:            {"it's"},
		`$'\x1b[31mred'`:       {"\x1b[31mred"},
		`$'a\nb'`:              {"a\nb"},
		`$'\xff'`:              {"\xff"},
		"'naïve – ok'":         {"naïve – ok"},
		`$'\u202etxt'`:         {"\u202etxt"},
		`$'it\'s\t"quoted"\\'`: {"it's\t\"quoted\"\\"},
	} {
		if got := commandLine(argv); got != want {
			t.Errorf("%q is %s, want %s", argv, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		argv := rapid.SliceOfN(rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }), 0, 5).Draw(t, "argv")
		s := commandLine(argv)
		for _, r := range s {
			if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
				t.Fatalf("%q has a control character", s)
			}
		}
		if !utf8.ValidString(s) || len(s) > widestCommand {
			t.Fatalf("%q: %d bytes", s, len(s))
		}
	})
}

// BenchmarkCommandLine measures reading "run --rw . -- true".
func BenchmarkCommandLine(b *testing.B) {
	args := []string{"run", "--rw", ".", "--", "true"}
	for b.Loop() {
		a := &app{stdout: io.Discard, stderr: io.Discard, say: voice{w: io.Discard}}
		root := newRoot(a, args)
		c, rest, err := root.Find(args)
		if err == nil {
			err = c.ParseFlags(rest)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// TestJSONBytes: bytes that are not UTF-8 survive, and nothing else is taken for one.
func TestJSONBytes(t *testing.T) {
	type box struct {
		S    string
		L    []string
		Any  any
		M    map[string][]any
		P    *string
		When time.Time
	}
	p := "p\xfe"
	var b strings.Builder
	v := box{"a\x80b\uFFFDé\xff", []string{`\u000080`, "\\\x81"}, "i\x82", map[string][]any{"k": {"m\x83"}}, &p, time.Time{}}
	if err := writeJSON(&b, v, ""); err != nil {
		t.Fatal(err)
	}
	const want = `{"S":"a\udc80b` + "\uFFFDé" + `\udcff","L":["\\u000080","\\\udc81"],"Any":"i\udc82","M":{"k":["m\udc83"]},"P":"p\udcfe","When":"0001-01-01T00:00:00Z"}` + "\n"
	if b.String() != want {
		t.Errorf("got  %s\nwant %s", b.String(), want)
	}
}

// A joined error is several errors. One that wraps several and has its own text is one.
func TestLeaves(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{a, 1},
		{errors.Join(a, b), 2},
		{errors.Join(errors.Join(a, b), b), 3},
		{policy.Errors{{Err: a}, {Err: b}}, 2},
		{fmt.Errorf("while reading: %w: %w", a, b), 1},
		{errors.Join(fmt.Errorf("%w: %w", a, b), b), 2},
	} {
		if got := leaves(c.err); len(got) != c.want {
			t.Errorf("%q: %d errors, want %d", c.err, len(got), c.want)
		}
	}
}

// TestShellPrograms: a file's name is no program, whatever it is called.
func TestShellPrograms(t *testing.T) {
	for line, want := range map[string]string{
		"cd x && npm test":                       "cd npm",
		"echo x >>.git/hooks/pre-commit":         "echo",
		"ls ~/.npm/bin/node; cat python3":        "ls cat",
		"if ! A=1 cargo build; then exec go x":   "cargo go",
		"timeout 5 make 2>&1 | xargs -n1 'pip3'": "make pip3",
		"":                                       "",
	} {
		if got := strings.Join(shellPrograms([]string{"sh", "-c", line}), " "); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	if got := shellPrograms([]string{"make", "-c", "npm"}); got != nil {
		t.Errorf("make is no shell: %q", got)
	}
}
