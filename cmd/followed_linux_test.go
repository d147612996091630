package cmd

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
)

// followable are acts that zsbx refuses. check has the question about the act, if check has one;
// not names the sources that give no hint for it.
var followable = []struct {
	name, flags, line, check, not string
}{
	{"read a file", "--rw .", "cat ~/data/f", "--read ~/data/f", "run"},
	{"read a directory", "--rw .", "ls ~/data", "--read ~/data", "run"},
	{"write a file", "--rw .", "echo x >~/data/f", "--write ~/data/f", "run"},
	{"append to a file that may be read", "--rw . --ro ~/data", "echo x >>~/data/f", "--write ~/data/f", "run"},
	{"execute a program", "--rw .", "~/more/prog", "--exec ~/more/prog", "run"},
	{"execute a command", "--rw .", "exec ~/more/prog", "", "run"},
	{"make a file", "--rw .", "echo x >~/data/new", "", "run"},
	{"make a directory", "--rw .", "mkdir ~/data/dir", "", "run"},
	{"make a directory of a tool", "--rw .", "mkdir -p ~/.sometool/cache && echo x >~/.sometool/cache/f", "", "run"},
	{"remove a file", "--rw .", "rm ~/data/f", "", "run"},
	{"move a file", "--rw .", "mv ~/data/f ~/data/g", "", "run"},
	{"link a file", "--rw .", "ln ~/data/f ~/data/g", "", "run"},
	{"change a mode", "--rw .", "chmod 600 ~/data/f && echo x >~/data/f", "", "run"},
	{"write in the project, read-only by default", "", "sh ./build", "--write made", ""},
	{"write in the project, closed", "--ro ~/data", "sh ./build", "--write made", "run"},
	{"write in another member of the repository", "--rw .", "echo x >../other/made", "", "run"},
	{"a Unix socket", "--rw .", "perl connect.pl ~/data/socket", "--connect ~/data/socket", "run learn"},
	{"a Unix socket in /tmp", "--rw .", "perl connect.pl SOCKET", "--connect SOCKET", "run learn"},
	{"a TCP port", "--rw . --connect-tcp 1", "perl tcp.pl PORT", "--connect localhost:PORT", "run"},
	{"a program on a closed directory of PATH", "--rw .", "PATH=$HOME/bin:$PATH; tool", "", "run"},
	{"a private home", "--rw . --private-home", "cat ~/data/f", "--read ~/data/f", ""},
	{"written to a private home", "--rw . --private-home", "test -e ~/kept/f || { mkdir -p ~/kept; echo x >~/kept/f; exit 1; }", "", "why learn"},
	{"a file in /tmp", "--rw .", "cat TMPFILE", "--read TMPFILE", "why learn"},
	{"a setting of git", "--rw .", "git config user.name x", "--write ../.git/config", "learn"},
	{"a remote of git", "--rw .", "git remote add o /nowhere", "", "learn"},
	{"a missing directory", "--rw . --rw missing", "echo x >missing/f", "", "why learn"},
	{"a missing file", "--rw . --ro missing", "true", "", "why learn"},
}

// neverOpened are what no hint may open: a question of check each.
var neverOpened = []string{
	"--read ~/.ssh/id_rsa", "--write ~/.ssh/id_rsa", "--read ~/.config/gh/hosts.yml", "--write ~/.config/gh/hosts.yml", "--write ~/.bashrc",
	"--write ~/bin/tool", "--write ~/bin/new", "--write ~/code/theirs/run", "--write ~/code/theirs/new",
	"--read ~/code/unseen", "--write ~/code/unseen", "--read ~/unseen", "--write ~/unseen", "--write /usr/bin/env",
}

// follower follows hints in a home directory.
type follower struct {
	t               *testing.T
	zsbx, home, dir string
	env             []string
	names           *strings.Replacer // of what differs from test to test
}

// follow makes the home directory: a project in a repository, and what must stay closed.
func follow(t *testing.T, zsbx string) *follower {
	t.Helper()
	own, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp(own, ".zsbx-followed-") // nothing in /tmp is seen inside
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	f := &follower{t: t, zsbx: zsbx, home: home, dir: filepath.Join(home, "code/mine/app")}
	for name, text := range map[string]string{
		"data/f": "x\n", "data/other": "", ".ssh/id_rsa": "", ".config/gh/hosts.yml": "", ".bashrc": "", "code/unseen": "", "unseen": "",
		"more/prog": "#!/bin/sh\necho prog\n", "bin/tool": "#!/bin/sh\necho tool\n", "code/theirs/run": "", "code/mine/other/x": "",
		"code/mine/app/build": "echo x >made\n", "code/mine/app/connect.pl": connectPl, "code/mine/app/tcp.pl": tcpPl,
	} {
		name = filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f.env = []string{"HOME=" + home, "PATH=/usr/local/bin:/usr/bin:/bin", "TERM=dumb", "ZSBX=" + zsbx}
	for _, repo := range []string{"code/mine", "code/theirs"} {
		if out, err := exec.Command("git", "init", "-q", filepath.Join(home, repo)).CombinedOutput(); err != nil {
			t.Fatalf("%s", out)
		}
	}
	tmp := t.TempDir()
	if err := os.WriteFile(tmp+"/f", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{tmp + "/s", home + "/data/socket"} {
		l, err := net.Listen("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	f.names = strings.NewReplacer("TMPFILE", tmp+"/f", "SOCKET", tmp+"/s", "PORT", port)
	return f
}

const connectPl = `use Socket; socket(my $s, AF_UNIX, SOCK_STREAM, 0); connect($s, pack_sockaddr_un($ARGV[0])) or die "$!\n"`
const tcpPl = `use Socket; socket(my $s, AF_INET, SOCK_STREAM, 0); connect($s, pack_sockaddr_in($ARGV[0], inet_aton("127.0.0.1"))) or die "$!\n"`

// sh runs a line of a shell, and returns what it printed.
func (f *follower) sh(line string) (said string, err error) {
	c := exec.Command("sh", "-c", line)
	c.Dir, c.Env = f.dir, f.env
	out, err := c.CombinedOutput()
	return string(out), err
}

// inside is a command line that runs a line of a shell in zsbx.
func inside(command, flags, line string) string {
	return fmt.Sprintf(`"$ZSBX" %s %s -- sh -c '%s'`, command, flags, line)
}

// typed returns what a user would type from what zsbx said: flags to add, or lines that are to be
// run first. A hint that has the whole command line is the same flags again.
func typed(said string) (all []string) {
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		hint, is := strings.CutPrefix(line, "zsbx: hint: ")
		if _, flags, found := strings.Cut(line, "of the same name may run"); found {
			_, hint, is = strings.Cut(flags, ": --")
			hint = "--" + strings.TrimPrefix(hint[strings.LastIndex(hint, ": --")+1:], ": --")
		}
		if whole, found := strings.CutPrefix(hint, "zsbx run "); found {
			hint, _, _ = strings.Cut(whole, " -- sh -c ")
		}
		if is || strings.HasPrefix(hint, "--") {
			all = append(all, hint)
		}
	}
	return all
}

// TestFollowedForReal: what zsbx refuses works once its hint was followed word for word, and
// that opens no secret, no program, no other project and no directory above.
func TestFollowedForReal(t *testing.T) {
	t.Parallel()
	zsbx := asZsbx(t)
	for _, program := range []string{"git", "perl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	caps := enforce.Probe()
	enforce.ProbeNamespaces(&caps)
	if !caps.MountNS || !caps.SeccompNotify {
		t.Skip("no mount namespace or no supervisor can be had")
	}
	for _, act := range followable {
		for _, source := range []string{"run", "why", "check", "learn"} {
			if slices.Contains(strings.Fields(act.not), source) || source == "check" && act.check == "" {
				continue
			}
			t.Run(act.name+"/"+source, func(t *testing.T) {
				t.Parallel()
				f := follow(t, zsbx)
				if out, err := f.sh("mkdir -p missing; (" + f.fill(act.line) + ") || (" + f.fill(act.line) + ")"); err != nil {
					t.Fatalf("the control: %s", out)
				}
				f = follow(t, zsbx)
				f.followed(source, act.flags, f.fill(act.line), f.fill(act.check), 2)
			})
		}
	}
}

// fill puts the names of this follower's files into a line.
func (f *follower) fill(line string) string { return f.names.Replace(line) }

// try runs a line in zsbx, up to two times: the second one finds what the first one left.
func (f *follower) try(flags, line string) (said string, err error) {
	said, err = f.sh(inside("run", flags, line))
	if err != nil {
		said, err = f.sh(inside("run", flags, line))
	}
	return said, err
}

// followed takes each hint of a source, and tries the act again. Some acts need several things,
// which are refused one after the other.
func (f *follower) followed(source, flags, line, check string, rounds int) {
	t := f.t
	t.Helper()
	said, err := f.try(flags, line)
	if err == nil {
		t.Fatalf("not refused: %s", said)
	}
	switch source {
	case "why":
		said, _ = f.sh(inside("why", flags, line))
	case "check":
		said, _ = f.sh(`"$ZSBX" check ` + flags + " " + check)
	case "learn":
		said, _ = f.sh(inside("learn --yes", flags, line) + " 2>/dev/null")
		f = follow(t, f.zsbx) // the command has done it
		if err := os.WriteFile(filepath.Join(f.dir, "learnt.toml"), []byte(said), 0o644); err != nil {
			t.Fatal(err)
		}
		said = "--policy learnt.toml"
	}
	hints := typed(said)
	if hints == nil {
		t.Fatalf("no hint: %s", said)
	}
	for _, hint := range hints {
		more := flags + " " + hint
		if !strings.HasPrefix(hint, "-") {
			more = flags
			if out, err := f.sh(hint); err != nil {
				t.Errorf("%s: %s", hint, out)
			}
		}
		f.closed(flags, more)
		out, err := f.try(more, line)
		switch {
		case err == nil:
		case rounds > 1:
			f.followed(source, more, line, check, rounds-1)
		default:
			t.Errorf("%s: the act still fails: %s", more, out)
		}
	}
}

// closed checks that more flags open nothing that no hint may open.
func (f *follower) closed(flags, more string) {
	f.t.Helper()
	ask := func(flags string) []string {
		said, _ := f.sh(`"$ZSBX" check ` + flags + " " + strings.Join(neverOpened, " ") + " 2>/dev/null")
		return strings.Split(strings.TrimSpace(said), "\n")
	}
	before, after := ask(flags), ask(more)
	if len(before) != len(neverOpened) { // a missing path is an error
		before = ask("--rw .")
	}
	if len(after) != len(neverOpened) {
		f.t.Fatalf("check says %q", after)
	}
	for i, line := range after {
		if !strings.HasPrefix(strings.TrimSpace(line), "refused") && strings.HasPrefix(strings.TrimSpace(before[i]), "refused") {
			f.t.Errorf("%s opens it: %s", more, line)
		}
	}
}
