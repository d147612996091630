package guard_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zsbx/zsbx/internal/guard"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

const catastrophic = "catastrophic"

// guarded is a guard for a command in /home/u/project.
type guarded policy.Guard

// on makes a guard of the named lists.
func on(p policy.Guard, lists ...string) guarded {
	for _, l := range lists {
		p.Lists = append(p.Lists, policy.Named{Value: l, Origin: policy.Origin{Source: "--guard"}})
	}
	return guarded(p)
}

func (g guarded) Check(argv []string) error {
	return check(policy.Guard(g), "/home/u", "/home/u/project", argv)
}

func check(g policy.Guard, home, dir string, argv []string) error {
	return guard.Check(&policy.Policy{Guard: g}, &host.Host{OS: "linux", Home: home, Dir: dir}, argv)
}

// refuses reports whether an error is a refusal for a word of a list.
func refuses(err error, word, list string) bool {
	e, ok := err.(*policy.Error)
	return ok && e.Code == policy.CodeGuard && e.Msg == fmt.Sprintf("%q is on the guard's list %s", word, list)
}

// TestCatastrophic has what is refused, and beside it similar lines that are not.
func TestCatastrophic(t *testing.T) {
	g := on(policy.Guard{}, catastrophic)
	for _, tt := range []struct {
		line string // a shell's, but for those that begin with "argv "
		want string // "" for nothing
	}{
		{"rm -rf /", "rm -r /"},
		{"rm -rf ./build", ""},
		{"rm -f /", ""}, // rm(1) refuses that itself
		{"rm -r -f -- /*", "rm -r /*"},
		{"rm --recursive ~", "rm --recursive ~"},
		{"rm -rf ~/project/build ~/.cache", ""},
		{`rm -rf "$HOME"`, "rm -r /home/u"},
		{`rm -rf "$HOME/x"`, ""},
		{`rm -rf ${HOME}/*`, "rm -r /home/u/*"},
		{`rm -rf ../../`, "rm -r ../../"},
		{`rm -rf ..`, "rm -r .."},
		{`rm -rf *`, ""},
		{`cd / && rm -rf *`, "rm -r *"},
		{`cd /tmp && rm -rf *`, ""},
		{`cd; rm -rf *`, ""}, // a limit: where cd without arguments goes is not followed
		{`rm -rf /usr/../etc/`, "rm -r /usr/../etc/"},
		{`rm -rf --no-preserve-root /x`, "rm --no-preserve-root"},
		{`sudo -u root rm -rf /`, "rm -r /"},
		{`env -i A=1 nice -n 5 rm -rf /`, "rm -r /"},
		{`timeout -k 5 10 rm -rf /`, "rm -r /"},
		{`find . | xargs -n 1 rm -rf /`, "rm -r /"},
		{`busybox rm -rf /`, "rm -r /"},
		{`/bin/rm -rf /`, "rm -r /"},
		{`\rm -rf /`, "rm -r /"},
		{`r""m -rf /`, "rm -r /"},
		{`'rm' -rf /`, "rm -r /"},
		{`eval "rm -rf" /`, "rm -r /"},
		{`sh -c 'sh -c "rm -rf /"'`, "rm -r /"},
		{`bash -lc "rm -rf /"`, "rm -r /"},
		{`bash -c -e 'rm -rf /'`, "rm -r /"},
		{`bash -euo pipefail -c 'rm -rf /'`, "rm -r /"},
		{`bash x.sh -c 'rm -rf /'`, ""},
		{`bash +x +o posix -c 'rm -rf /'`, "rm -r /"},
		{"cat <<E\nrm -rf /\nE", ""},
		{"echo 'rm -rf /'", ""},
		{"git commit -m 'never rm -rf /'", ""},
		{"if true; then (rm -rf /) & fi", "rm -r /"},
		{"f() { rm -rf /; }", "rm -r /"},
		{"a=$(rm -rf /)", "rm -r /"},
		{"find / -delete", "find / -delete"},
		{"find / -name x", ""},
		{"find . -exec rm -rf / \\;", "rm -r /"},
		{"find ~ -type f -exec rm {} +", "find ~ rm"},
		{"find ./build -delete", ""},
		{"chmod -R 777 /", "chmod -R /"},
		{"chmod -R u+w build", ""},
		{"chmod 755 /", ""},
		{"chown -R u:u /etc", "chown -R /etc"},
		{"mkfs.ext4 /dev/sda1", "mkfs.ext4"},
		{"mkfs -t ext4 disk.img", "mkfs"},
		{"dd if=/dev/zero of=/dev/sda bs=1M", "dd of=/dev/sda"},
		{"dd if=/dev/sda of=x.img", ""},
		{"dd if=x of=/dev/null", ""},
		{"cat x > /dev/sda", "> /dev/sda"},
		{"cat x > /dev/null 2>/dev/stderr", ""},
		{"cat x > /dev/tcp/host/80", ""},
		{"cat < /dev/sda", ""},
		{"tee /dev/nvme0n1 < x", "tee /dev/nvme0n1"},
		{"cp ./x /dev/mapper/root", "cp ./x /dev/mapper/root"},
		{"cp /dev/sda x", ""},
		{"mv ~ /tmp/x", "mv ~ /tmp/x"},
		{"rm / -rf", "rm / -r"},
		{"sleep 1 & f() { f; }; f", ""},
		{"mv x ~", ""},
		{":(){ :|:& };:", ":()"},
		{"bomb() { bomb | bomb & }; bomb", "bomb()"},
		{"walk() { for i in *; do walk $i; done; }", ""},
		{"build() { make & wait; }", ""},
		// What is not found, as the page says: it is built while the line runs.
		{"$(echo rm) -rf /", ""},
		{"echo cm0gLXJmIC8= | base64 -d | sh", ""},
		{"echo 'rm -rf /' | sudo sh", ""},
		{"sh <<E\nrm -rf /\nE", ""},
		{`x='rm -rf /'; $x`, ""},
		{`x=rm; y=/; $x -rf $y`, ""},
		{"flock x rm -rf /", ""},
		{"trap 'rm -rf /' EXIT", ""},
		{`python3 -c "import shutil; shutil.rmtree('/')"`, ""},
		{"echo 'rm -rf /' > x; sh x", ""},
		{"rm -rf /{bin,usr}", ""},
		{"read x; $x -rf /", ""},
		{"find . -exec true \\; -exec rm -rf / \\;", ""},
		{"cd $x && rm -rf *", ""},
		{"rm -rf $x/* \"$y\"/", ""},
		{"cat x > /dev/$x", ""},
	} {
		err := g.Check([]string{"sh", "-c", tt.line})
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.line, err)
		case tt.want != "" && !refuses(err, tt.want, catastrophic):
			t.Errorf("%s: got %v, want %s", tt.line, err, tt.want)
		}
	}
	for _, argv := range [][]string{{"rm", "-rf", "/"}, {"rm", "-rf", "."}, {"env", "A=1", "rm", "-r", "/home"}} {
		p, dir := policy.Guard(on(policy.Guard{}, catastrophic)), "/home/u/project"
		if argv[2] == "." {
			dir = "/home/u"
		}
		if err := check(p, "/home/u", dir, argv); err == nil {
			t.Errorf("%q is not refused", argv)
		}
	}
	if err := g.Check([]string{"rm", "-rf", "~"}); err == nil {
		t.Error("a shell that quotes ~ is a mistake that deserves to be told")
	}
}

func TestLists(t *testing.T) {
	all := []string{"interpreters", "escapes", "exfiltration", "shells"}
	for _, tt := range []struct{ list, line, ok string }{
		{"interpreters", "python3 -c 'x'|python3.12 -Ic x|perl -ne x|node --eval=x|env ruby -e x|deno eval x|/usr/bin/python -c x", "python3 x.py -c y|perl x.pl|node x.js -e|pythonista -x"},
		{"escapes", "nohup x|setsid -f x|tmux new|x & disown|sudo screen", "echo nohup|./at.sh"},
		{"exfiltration", "curl -s x|true && nc h 1|env wget x|nc.openbsd h 1", "echo curl|apt install curl|git clone x"},
		{"shells", "bash -c x|sh -ec x|busybox sh -c x|xargs sh -c x|dash -c x|pwsh -Command x", "bash x.sh|sh build.sh -c"},
	} {
		for _, list := range all {
			g := on(policy.Guard{}, list)
			for _, line := range strings.Split(tt.line, "|") {
				var argv []string
				if strings.Contains(line, "&") || strings.Contains(line, ";") {
					if list == "shells" {
						continue
					}
					argv = []string{"bash", "-c", line}
				} else {
					argv = strings.Fields(strings.ReplaceAll(line, "'", ""))
				}
				if err := g.Check(argv); (err != nil) != (list == tt.list) {
					t.Errorf("%s, %q: %v", list, argv, err)
				}
			}
			for _, line := range strings.Split(tt.ok, "|") {
				if err := g.Check(strings.Fields(line)); err != nil {
					t.Errorf("%s, %s: %v", list, line, err)
				}
			}
		}
	}
}

func TestOwnWords(t *testing.T) {
	p := policy.Guard{Words: []policy.Named{
		{Name: "mine", Value: "terraform destroy"}, {Name: "shells", Value: "xonsh"}, {Name: "mine", Value: "git push --force*"},
	}}
	g := on(p, "mine", "shells", "mine")
	for line, want := range map[string]string{
		"terraform -chdir=x destroy -auto-approve": "mine", "terraform plan": "", "git push origin --force-with-lease": "mine", "git push origin": "", "xonsh": "shells", "sh -c x": "shells",
	} {
		err := g.Check(strings.Fields(line))
		if (err != nil) != (want != "") || err != nil && !strings.HasSuffix(err.Error(), "list "+want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	err := check(policy.Guard{Lists: []policy.Named{{Value: "nope", Origin: policy.Origin{Source: "p.toml", Line: 2, Column: 3}}}}, "", "/", nil)
	var es policy.Errors
	if !errors.As(err, &es) || !strings.Contains(err.Error(), `p.toml:2:3: unknown guard list "nope": the lists are catastrophic, escapes`) {
		t.Errorf("%v", err)
	}
}

// TestOff checks that nothing is refused without a list.
func TestOff(t *testing.T) {
	g := on(policy.Guard{Words: []policy.Named{{Name: "x", Value: "rm"}}})
	if err := g.Check([]string{"rm", "-rf", "/"}); err != nil {
		t.Error(err)
	}
}

// TestBadLines checks lines that can't be parsed, and odd ones.
func TestBadLines(t *testing.T) {
	g := on(policy.Guard{}, catastrophic)
	for _, tt := range []struct{ line, want string }{
		{"rm -rf '/", "line: 1:8: reached EOF without closing quote"},
		{"if true", "can't read the shell line"},
		{strings.Repeat("(", 5000), "nested more than 500 levels deep"},
		{strings.Repeat("(", 8000) + "true" + strings.Repeat(")", 8000), "nested more than 500 levels deep"},
		{strings.Repeat("$(", 501) + "rm -rf /" + strings.Repeat(")", 501), "nested more than 500 levels deep"},
		{strings.Repeat("$(", 500) + "rm -rf /" + strings.Repeat(")", 500), "rm -r /"},
		{strings.Repeat("{ ", 400) + "rm -rf /" + strings.Repeat(";}", 400), "rm -r /"},
		{"case x in " + strings.Repeat("a) true;; ", 1000) + "esac; (rm -rf /)", "rm -r /"},
		{"echo \xff\xfe; rm -rf /", "rm -r /"},
		{"rm -rf / #\xff", "rm -r /"},
		{"true\n\n  rm -rf /", `"rm -r /" is on the guard's list catastrophic`},
		{"sh -c 'true; rm -rf /'", "list catastrophic"},
		{"", ""},
	} {
		err := g.Check([]string{"sh", "-c", tt.line})
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%.40q: got %v, want %q", tt.line, err, tt.want)
		}
	}
	deep := "true"
	for range 30 {
		deep = "eval " + fmt.Sprintf("%q", deep)
		if len(deep) > 1<<20 {
			break
		}
	}
	g.Check([]string{"sh", "-c", deep}) // comes back
	nest := []string{}
	for range 1000 {
		nest = append(nest, "env")
	}
	if err := g.Check(append(nest, "rm", "-rf", "/")); err == nil {
		t.Error("a thousand env hide a command")
	}
	for _, argv := range [][]string{{}, {""}, {"sh"}, {"sh", "-c"}, {"sh", "+"}, {"sh", "-"}, {"\xff", "-c", "\xff"}, {"env"}, {"find", "/"}, {"timeout"}, {"rm", ""}} {
		if err := g.Check(argv); err != nil {
			t.Errorf("%q: %v", argv, err)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("rm -rf /")
	f.Add("x=$y; ${x[1]} <<E\n$(a)\nE\n")
	p := policy.Guard(on(policy.Guard{}, catastrophic, "shells"))
	f.Fuzz(func(_ *testing.T, line string) {
		check(p, "", "/", []string{"busybox", "env", "bash", "-s", line})
		check(p, "", "", []string{"eval", line})
	})
}

// TestWork has short lines that expand to very many words: a check comes to an end. Lines that
// are just long are read.
func TestWork(t *testing.T) {
	g := on(policy.Guard{}, catastrophic, "interpreters", "escapes", "exfiltration")
	tree := strings.Repeat("find -exec -exec -exec -exec ", 18) + "true"
	for name, tt := range map[string]struct {
		argv   []string
		passes bool
	}{
		"find in find":  {strings.Fields(tree), true},
		"many -exec":    {strings.Fields("find . " + strings.Repeat("-exec ", 1<<16)), true},
		"eval of eval":  {[]string{"sh", "-c", strings.Repeat("eval ", 1<<14)}, false},
		"finds":         {strings.Fields(strings.Repeat("find -exec ", 1<<14)), false},
		"many files":    {append([]string{"rm", "-r"}, strings.Fields(strings.Repeat("x ", 1<<17))...), true},
		"a long script": {[]string{"sh", "-c", strings.Repeat("echo a b c\n", 1<<13)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			done := make(chan error, 1)
			go func() { done <- g.Check(tt.argv) }()
			select {
			case err := <-done:
				if err == nil != tt.passes || err != nil && !strings.Contains(err.Error(), "it has too many words") {
					t.Errorf("%v", err)
				}
				runtime.ReadMemStats(&after)
				if after.TotalAlloc-before.TotalAlloc > 512<<20 {
					t.Errorf("%d MiB were allocated", (after.TotalAlloc-before.TotalAlloc)>>20)
				}
			case <-time.After(testkit.Patience):
				t.Fatal("no answer")
			}
		})
	}
}
