package seatbelt_test

import (
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce/seatbelt"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// One table has the meaning of policies, and both systems' rules are compared with it. Its
// paths are of neither system: "~" is the home directory, "/etc" is "/private/etc" on macOS,
// and so on.

// verb is what a command tries.
type verb string

const (
	reads    verb = "read"
	writes   verb = "write"  // to a file that exists
	creates  verb = "create" // a file
	removes  verb = "remove" // a file
	executes verb = "execute"
	connects verb = "connect" // to a TCP port of another machine
	listens  verb = "listen"  // on a TCP port
	talks    verb = "talk"    // to a socket in the file system
	sends    verb = "datagram"
	signals  verb = "signal" // a process outside the session
)

// place has the paths of one system.
type place struct{ os, home, proj, tmp, etc string }

func places() []place {
	return []place{
		{"macos", "/Users/you", "/Users/you/src/app", "/private/var/folders/ab/cd/T/zsbx-1", "/private/etc"},
		{"linux", "/home/you", "/home/you/src/app", "/tmp/zsbx-1", "/etc"},
	}
}

// in expands a path of the table.
func (pl place) in(p string) string {
	for _, x := range []struct{ short, long string }{
		{"~", pl.home}, {"PROJ", pl.proj}, {"TMP", pl.tmp}, {"/etc", pl.etc}, {"HOMES", path.Dir(pl.home)},
	} {
		if rest, ok := strings.CutPrefix(p, x.short); ok && (rest == "" || rest[0] == '/') {
			return x.long + rest
		}
	}
	if pl.os == "macos" && host.Within(p, "/tmp") {
		return "/private" + p
	}
	return p
}

// scenario is a policy, resolved by hand for a system.
type scenario struct {
	name   string
	rules  []policy.Rule
	deny   []string
	net    resolve.ResolvedNet
	shared bool     // /tmp as it is
	files  []string // existing files, denied ones and others
}

func given(a policy.Access, p string) policy.Rule {
	return policy.Rule{Path: p, Access: a, Origin: policy.Origin{Source: "--" + a.String()}}
}

// resolve returns what Resolve makes of a scenario on a machine with every path of the
// baseline.
func (s scenario) resolve(pl place) *resolve.Resolved {
	r := &resolve.Resolved{OS: pl.os, Dir: pl.proj, Home: pl.home, TempDir: pl.tmp, Net: s.net}
	base := policy.Baseline(pl.os)
	var rules []policy.Rule
	rules = append(rules, base.FS.System.Executable...)
	rules = append(rules, base.FS.System.ReadOnly...)
	rules = append(rules, base.FS.System.ReadWrite...)
	rules = append(rules, base.FS.Rules...)
	rules = append(rules, s.rules...)
	if s.shared {
		r.TempDir = ""
		rules = append(rules, given(policy.Read|policy.Write|policy.Exec, "/tmp"))
	} else {
		rules = append(rules, given(policy.Read|policy.Write|policy.Exec, "TMP"))
	}
	for _, rl := range rules {
		if strings.Contains(rl.Path, "$") {
			continue
		}
		p := pl.in(rl.Path)
		mode := fs.ModeDir
		switch {
		case strings.HasPrefix(p, "/dev/"):
			mode = fs.ModeDevice | fs.ModeCharDevice
		case strings.HasPrefix(path.Base(p), ".") || rl.Access == policy.Read && strings.Contains(path.Base(p), "."):
			mode = 0
		}
		r.Paths = append(r.Paths, resolve.Path{Path: p, Access: rl.Access, Mode: mode, Rule: rl})
	}
	for _, d := range s.deny {
		r.Deny = append(r.Deny, resolve.DenyPath{Pattern: pl.in(d), Glob: strings.ContainsAny(d, "*?["),
			Deny: policy.Named{Value: d, Origin: policy.Origin{Source: "--deny"}}})
	}
	return r
}

// expectation is one row.
type expectation struct {
	verb verb
	what string // path, or port for the network
	want bool
}

// meanings returns the promises. First comes what a command under the default policy with a
// writable project can and can't do, then one scenario for each thing that a user can add.
func meanings() map[*scenario][]expectation {
	const all = policy.Read | policy.Write | policy.Exec
	open := resolve.ResolvedNet{Mode: resolve.NetOpen}
	none := resolve.ResolvedNet{Mode: resolve.NetNone}
	ports := resolve.ResolvedNet{Mode: resolve.NetPorts,
		ConnectTCP: []policy.Port{{Number: 443}}, BindTCP: []policy.Port{{Number: 8080}}}
	return map[*scenario][]expectation{
		{name: "project", rules: []policy.Rule{given(all, "PROJ")}, net: open}: {
			{reads, "PROJ/main.go", true}, {writes, "PROJ/main.go", true}, {creates, "PROJ/out/a.o", true},
			{removes, "PROJ/out/a.o", true}, {executes, "PROJ/out/a.out", true},
			{executes, "/bin/ls", true}, {executes, "/usr/bin/git", true}, {reads, "/usr/lib/x", true},
			{reads, "~/Documents/letter", false}, {reads, "~", false}, {reads, "/etc/passwd", true}, {writes, "/etc/passwd", false},
			{reads, "~/.ssh/id_ed25519", false}, {reads, "~/.ssh/config", false}, {writes, "/usr/bin/ls", false},
			{creates, "/usr/bin/x", false}, {creates, "/etc/x", false}, {creates, "/usr/local/bin/x", false},
			{reads, "~/.zshrc", true}, {writes, "~/.zshrc", false}, {removes, "~/.zshrc", false}, {creates, "~/.zlogin", false},
			{creates, "TMP/x", true}, {executes, "TMP/x", true}, {creates, "/tmp/x", false}, {reads, "/tmp/other", false},
			{reads, "HOMES/other/notes", false}, {removes, "~/src/other/file", false}, {removes, "~/Documents/letter", false},
			{executes, "~/.cargo/bin/cargo", false}, {reads, "~/.gnupg/private-keys-v1.d/k", false},
			{reads, "~/src/app2/x", false}, {writes, "/dev/null", true}, {reads, "/dev/urandom", true},
			{connects, "443", true}, {listens, "3000", true}, {sends, "53", true},
			{talks, "/private/var/run/docker.sock", false}, {talks, "~/.docker/run/docker.sock", false}, {signals, "", false},
		},
		{name: "nothing but the baseline", net: open}: {
			{reads, "PROJ/main.go", false}, {creates, "PROJ/x", false}, {executes, "/usr/bin/git", true}, {creates, "TMP/x", true},
		},
		{name: "toolchain", rules: []policy.Rule{given(all, "PROJ"), given(policy.Read|policy.Exec, "~/.cargo/bin"),
			given(policy.Read|policy.Exec, "~/.rustup/toolchains"), given(all, "~/.cargo/registry")}, net: open}: {
			{executes, "~/.cargo/bin/cargo", true}, {writes, "~/.cargo/bin/cargo", false}, {creates, "~/.cargo/registry/index/x", true},
			{reads, "~/.cargo/credentials.toml", false}, {executes, "~/.rustup/toolchains/stable/bin/rustc", true},
		},
		{name: "another writable path", rules: []policy.Rule{given(all, "PROJ"), given(all, "/opt/build")}, net: open}: {
			{creates, "/opt/build/x", true}, {reads, "/opt/build/x", true}, {creates, "/opt/buildx", false},
		},
		{name: "a readable path", rules: []policy.Rule{given(all, "PROJ"), given(policy.Read, "~/notes")}, net: open}: {
			{reads, "~/notes/a", true}, {writes, "~/notes/a", false}, {creates, "~/notes/b", false},
			{removes, "~/notes/a", false}, {executes, "~/notes/a", false},
		},
		{name: "no execution", rules: []policy.Rule{given(policy.Read|policy.Write, "~/data")}, net: open}: {
			{creates, "~/data/x", true}, {executes, "~/data/x", false},
		},
		{name: "no network", rules: []policy.Rule{given(all, "PROJ")}, net: none}: {
			{connects, "443", false}, {listens, "3000", false}, {sends, "53", false}, {creates, "PROJ/x", true},
		},
		{name: "two ports", rules: []policy.Rule{given(all, "PROJ")}, net: ports}: {
			{connects, "443", true}, {connects, "80", false}, {listens, "8080", true}, {listens, "443", false}, {sends, "53", false},
		},
		{name: "denials", rules: []policy.Rule{given(all, "PROJ"), given(policy.Read, "~/notes")}, net: open,
			deny:  []string{"PROJ/secret", "PROJ/keys", "~/notes/private"},
			files: []string{"PROJ/secret", "PROJ/keys/a.pem", "PROJ/main.go", "~/notes/private/x", "~/notes/public"}}: {
			{reads, "PROJ/secret", false}, {writes, "PROJ/secret", false}, {executes, "PROJ/secret", false},
			{reads, "PROJ/keys/a.pem", false}, {writes, "PROJ/keys/a.pem", false}, {creates, "PROJ/keys/b", false},
			{reads, "~/notes/private/x", false}, {reads, "~/notes/public", true}, {writes, "~/notes/public", false},
			{reads, "PROJ/main.go", true}, {writes, "PROJ/main.go", true}, {creates, "PROJ/secret2", true},
		},
		{name: "shared temporary directory", shared: true, rules: []policy.Rule{given(all, "PROJ")}, net: open}: {
			{creates, "/tmp/x", true}, {reads, "/tmp/x", true},
		},
		{name: "odd names", rules: []policy.Rule{given(all, `PROJ/a "b" (c) \d`), given(all, "PROJ/ünï ; x"), given(policy.Read, "PROJ/"+strings.Repeat("long/", 90)+"x")}, net: open}: {
			{creates, `PROJ/a "b" (c) \d/x`, true}, {creates, "PROJ/ünï ; x/y", true}, {creates, "PROJ/a", false},
			{reads, "PROJ/" + strings.Repeat("long/", 90) + "x/y", true}, {reads, "PROJ/" + strings.Repeat("long/", 90) + "y", false},
		},
	}
}

// TestMeaningOfProfiles asks the Seatbelt profile.
func TestMeaningOfProfiles(t *testing.T) {
	for s, rows := range meanings() {
		pl := places()[0]
		text, err := seatbelt.Profile(s.resolve(pl), seatbelt.Options{Session: testSession})
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		for _, rel := range releases() {
			p, err := Compile(text, rel, nil)
			if err != nil {
				t.Errorf("%s, macOS %d: %v", s.name, rel, err)
				break
			}
			for _, e := range rows {
				for _, q := range e.questions(pl) {
					if d := p.Decide(q.op, q.target); d.Allowed != e.want {
						t.Errorf("%s: %s %s: %s: %+v, want %v", s.name, e.verb, e.what, q.op, d, e.want)
					}
				}
			}
		}
	}
}

func releases() []Release {
	return []Release{MacOS14, MacOS15, MacOS26}
}

// question is what the kernel asks the profile for an act.
type question struct {
	op     string
	target Target
}

func (e expectation) questions(pl place) []question {
	file := Target{Path: pl.in(e.what)}
	tcp := Target{Proto: "tcp", Host: "192.0.2.1", Port: atoi(e.what)}
	local := tcp
	local.Local = true
	switch e.verb {
	case reads:
		return []question{{"file-read-data", file}, {"file-read-xattr", file}}
	case writes:
		return []question{{"file-write-data", file}}
	case creates:
		return []question{{"file-write-create", file}}
	case removes:
		return []question{{"file-write-unlink", file}}
	case executes:
		return []question{{"process-exec*", file}, {"process-exec", file}, {"file-map-executable", file}}
	case connects:
		return []question{{"network-outbound", tcp}}
	case listens:
		return []question{{"network-bind", local}, {"network-inbound", local}}
	case sends:
		tcp.Proto = "udp"
		return []question{{"network-outbound", tcp}}
	case talks:
		return []question{{"network-outbound", file}}
	case signals:
		return []question{{"signal", Target{Process: "others"}}}
	}
	panic("no such verb: " + e.verb)
}

func atoi(s string) int {
	n := 0
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0
		}
		n = 10*n + int(c-'0')
	}
	return n
}
