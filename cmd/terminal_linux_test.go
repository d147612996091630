package cmd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/zsbx/zsbx/internal/testkit"
)

// turn is one line of a dialogue: what is typed, and what must be shown then. The next turn
// comes only after that, so that nothing is typed ahead. "$" at the end stands for the shell's
// next prompt. An empty turn waits until the shell has handed over the terminal.
type turn struct{ keys, shows string }

// dialogues take place in a shell on a pseudo-terminal, once with the command alone and once with
// zsbx before it ("@"). Both must go the same way. Words that are waited for are typed with a
// quote in them, so that the echo of the typing does not count. What is to be stopped starts no
// program meanwhile, because a shell between vfork(2) and execve(2) does not stop.
var dialogues = []struct {
	name  string
	turns []turn
}{
	{"interrupt", []turn{
		{"@ sh -c 'echo re''ady; exec sleep 1000'\r", "ready"}, {"\x03", "$"}, {"echo sta''tus=$?\r", "status=130"},
	}},
	{"quit", []turn{
		{"@ sh -c 'ulimit -c 0; echo re''ady; exec sleep 1000'\r", "ready"}, {"\x1c", "$"}, {"echo sta''tus=$?\r", "status=131"},
	}},
	{"interrupt that is handled", []turn{
		{"@ sh -c 'trap \"echo caught; exit 9\" INT; echo re''ady; while :; do sleep 0.05; done'\r", "ready"},
		{"\x03", "caught$"}, {"echo sta''tus=$?\r", "status=9"},
	}},
	{"stop and fg", []turn{
		{"@ sh -c 'mkfifo f; echo re''ady; read x <f; echo never'\r", "ready"}, {"", ""}, {"\x1a", "Stopped$"},
		{"jobs\r", "Stopped$"}, {"fg\r", "never"}, {"", ""}, {"\x03", "$"}, {"echo sta''tus=$?\r", "status=130"},
	}},
	{"stop and bg", []turn{
		{"@ sh -c 'mkfifo f; echo re''ady; read x <f; echo fin''ished'\r", "ready"}, {"", ""}, {"\x1a", "Stopped$"},
		{"bg\r", "$"}, {"echo >f\r", "finished"}, {"wait; echo sta''tus=$?\r", "status=0"},
	}},
	{"background and kill", []turn{
		{"@ sh -c 'echo re''ady; exec sleep 1000' &\r", "ready"}, {"kill %1; wait %1; echo sta''tus=$?\r", "status=143"},
	}},
	{"exit status", []turn{
		{"@ sh -c 'exit 7'\r", "$"}, {"echo sta''tus=$?\r", "status=7"},
		{"@ sh -c 'kill -9 $$'; echo sta''tus=$?\r", "status=137"},
		{"@ sh -c 'kill -15 $$'; echo sta''tus=$?\r", "status=143"},
	}},
	{"reading the terminal", []turn{
		{"@ sh -c 'echo re''ady; read x; echo got=$x'\r", "ready"}, {"hello\r", "got=hello$"},
		{"@ sh -c 'echo re''ady; cat'\r", "ready"}, {"abc\r", "abc\r\nabc"}, {"\x04", "$"}, {"echo sta''tus=$?\r", "status=0"},
	}},
	{"window size", []turn{
		{"@ stty size\r", "33 77"},
	}},
	{"the terminal's name", []turn{
		{"@ sh -c 'echo na''me=$(tty) && echo op''ened >/dev/stderr' && tty\r", "name=/dev/pts/"}, {"", "opened"}, {"", "/dev/pts/$"},
		{"@ sh -c 'echo by na''me >$(tty)'; echo sta''tus=$?\r", "by name\r\nstatus=0"},
	}},
	{"a terminal that nobody has open for a while", []turn{
		{"@ sh -c 't=$(tty); exec </dev/null >/dev/null 2>&1; sleep 0.3; echo aga''in >$t; exit 6'; echo sta''tus=$?\r", "again\r\nstatus=6"},
	}},
	{"a shell inside", []turn{
		{"@ bash --norc -i\r", "bash"}, {"PS1='in''ner> '\r", "inner> "},
		{"sh -c 'echo re''ady; exec sleep 1000'\r", "ready"}, {"", ""}, {"\x1a", "Stopped"}, {"", ""},
		{"fg\r", "sleep 1000"}, {"", ""}, {"\x03", "inner> "}, {"sleep 1000 & kill %1; wait %1; echo in''side=$?\r", "inside=143"},
		{"exit 4\r", "$"}, {"echo sta''tus=$?\r", "status=4"},
	}},
	{"stopping a shell inside", []turn{
		{"@ bash --norc -i\r", "bash"}, {"PS1='in''ner> '\r", "inner> "}, {"kill -STOP $$\r", "Stopped$"}, {"", ""},
		{"fg\r", "bash"}, {"", ""}, {"\recho in''side=$$\r", "inside="}, {"exit 4\r", "$"}, {"echo sta''tus=$?\r", "status=4"},
	}},
	{"pipes", []turn{
		{"@ sh -c 'echo a; exit 3' | cat; echo sta''tus=$?\r", "status=0"},
		{"@ yes | head -n 2 | wc -l; echo sta''tus=$?\r", "2\r\nstatus=0"},
		{"@ seq 100000 | tail -n 1 | tr 1 9\r", "900000"},
	}},
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	zsbx := asZsbx(t)
	for _, shell := range []string{"bash --norc --noprofile -i", "sh -i"} {
		for _, d := range dialogues {
			for name, prefix := range map[string]string{"bare": "", "zsbx": zsbx + " run --rw . -- ", "tty": zsbx + " run -t --rw . -- ", "why": zsbx + " why --rw . -- ", "keep": zsbx + " run --keep --rw . -- "} {
				t.Run(strings.Fields(shell)[0]+"/"+d.name+"/"+name, func(t *testing.T) {
					if name == "tty" && notOnANewTerminal(d.name) {
						return
					}
					t.Parallel()
					hold(t, shell, prefix, d.turns)
				})
			}
		}
	}
}

// notOnANewTerminal names the dialogues that end differently with a terminal of the command's
// own: there the command is a session leader, nobody else stops that terminal, and its output
// may be no pipe.
func notOnANewTerminal(name string) bool {
	switch name {
	case "stop and fg", "stop and bg", "background and kill", "pipes", "stopping a shell inside", "reading the terminal":
		return true
	}
	return false
}

// asZsbx makes a name under which the test binary is a zsbx that accepts no gap.
func asZsbx(t *testing.T) string {
	t.Helper()
	needLimits(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "zsbx")
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	return link
}

// openCommand returns a command with this environment.
func openCommand(name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Env = openEnv()
	return c
}

// openEnv is this process's, with a PATH that is not closed in part: nobody may read that.
func openEnv() []string {
	return append(os.Environ(), "PATH="+testkit.SystemPath(os.Getenv("PATH"), os.TempDir()))
}

// screen is what a pseudo-terminal has shown so far.
type screen struct {
	mu   sync.Mutex
	text string
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text += string(p)
	return len(p), nil
}

// after waits until want is shown after from, and returns the position after it.
func (s *screen) after(from int, want string) (int, bool) {
	to := 0
	ok := testkit.Within(testkit.Patience, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		i := strings.Index(s.text[from:], want)
		to = from + i + len(want)
		return i >= 0
	})
	return to, ok
}

// hold runs one dialogue.
func hold(t *testing.T, shell, prefix string, turns []turn) {
	argv := strings.Fields(shell)
	testkit.NeedProgram(t, argv[0])
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = t.TempDir()
	c.Env = append(openEnv(), "PS1=outer$ ", "TERM=dumb", "HOME="+c.Dir, "HISTFILE=")
	master, err := pty.StartWithSize(c, &pty.Winsize{Rows: 33, Cols: 77})
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			s.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	defer func() {
		master.Close()
		syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		c.Wait()
		if t.Failed() {
			t.Logf("the terminal showed:\n%s", s.text)
		}
	}()
	at, ok := s.after(0, prompt)
	if !ok {
		t.Fatal("no prompt")
	}
	group := foregroundBelow(c.Process.Pid)
	for _, turn := range turns {
		if turn.keys == "" && turn.shows == "" {
			testkit.Within(testkit.Patience, func() bool { return foregroundBelow(c.Process.Pid) != group })
			continue
		}
		group = foregroundBelow(c.Process.Pid)
		fmt.Fprint(master, strings.ReplaceAll(turn.keys, "@ ", prefix))
		shows, thenPrompt := strings.CutSuffix(turn.shows, "$")
		for line := range strings.SplitSeq(shows, "\r\n") { // zsbx may have printed something in between
			at, ok = s.after(at, line)
			if !ok {
				t.Fatalf("after %q: %q was not shown", turn.keys, line)
			}
		}
		if thenPrompt {
			at, ok = s.after(at, prompt)
			if !ok {
				t.Fatalf("after %q: no prompt", turn.keys)
			}
		}
	}
}

const prompt = "outer$ "

// foregroundBelow returns the foreground group of a process's terminal, or of another terminal
// that a process below it has (proc_pid_stat(5), tty_nr and tpgid).
func foregroundBelow(pid int) string {
	terminal, group := "", ""
	for below := []string{fmt.Sprint(pid)}; len(below) > 0; below = below[1:] {
		stat, _ := os.ReadFile("/proc/" + below[0] + "/stat")
		_, rest, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(rest); len(f) > 5 && f[4] != "0" && f[4] != terminal {
			terminal, group = f[4], f[5]
		}
		n, _ := strconv.Atoi(below[0])
		below = append(below, childrenOf(n)...)
	}
	return group
}

// TestTerminalSizeFollows changes the size while the command runs.
func TestTerminalSizeFollows(t *testing.T) {
	t.Parallel()
	zsbx := asZsbx(t)
	for _, flags := range []string{"", "-t"} {
		script := zsbx + " run " + flags + " -- sh -c 'trap \"stty size; exit\" WINCH; echo ready; while :; do sleep 0.05; done'"
		c := exec.Command("sh", "-c", script)
		c.Dir = t.TempDir()
		master, err := pty.StartWithSize(c, &pty.Winsize{Rows: 10, Cols: 20})
		if err != nil {
			t.Fatal(err)
		}
		s := &screen{}
		go func() {
			buf := make([]byte, 4096)
			for {
				n, err := master.Read(buf)
				s.Write(buf[:n])
				if err != nil {
					return
				}
			}
		}()
		if _, ok := s.after(0, "ready"); !ok {
			t.Fatalf("%q: not ready: %s", flags, s.text)
		}
		pty.Setsize(master, &pty.Winsize{Rows: 44, Cols: 99})
		if _, ok := s.after(0, "44 99"); !ok {
			t.Errorf("%q: the new size was not seen: %s", flags, s.text)
		}
		c.Wait()
		master.Close()
	}
}

// TestSignalsToZsbx sends signals only to zsbx, not to its group.
func TestSignalsToZsbx(t *testing.T) {
	zsbx := asZsbx(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGUSR1} {
		name := sig.String()
		c := openCommand(zsbx, "run", "--", "sh", "-c", "for s in TERM HUP INT USR1; do trap \"echo got $s; exit 9\" $s; done; echo ready; while :; do sleep 0.02; done")
		c.Dir = t.TempDir()
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		out, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c.Stdout = w
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		w.Close()
		buf := make([]byte, 100)
		out.Read(buf)
		c.Process.Signal(sig)
		c.Wait()
		n, _ := out.Read(buf)
		if c.ProcessState.ExitCode() != 9 || !regexp.MustCompile("^got [A-Z0-9]+\n").Match(buf[:n]) {
			t.Errorf("%s: ended with %v and %q", name, c.ProcessState, buf[:n])
		}
	}
}
