package cmd

import (
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/zsbx/zsbx/internal/testkit"
)

// tryDialogues take place in a shell on a pseudo-terminal, in an empty directory: a command has written files,
// and zsbx asks what becomes of them. "@ " stands for zsbx. After each the command's exit status is shown.
var tryDialogues = []struct {
	name  string
	turns []turn
}{
	{"apply", []turn{
		{"@ try -- sh -c 'echo x >new; exit 3'\r", asked}, {"a\r", "applied 1 change; 0 left in the layer"}, {"", "--undo$"},
		{"echo sta''tus=$? $(cat new)\r", "status=3 x$"}, {"@ try\r", "applied"},
	}},
	{"throw away", []turn{
		{"@ try -- sh -c 'echo x >new; exit 3'\r", asked}, {"t\r", "thrown away$"},
		{"echo sta''tus=$? $(ls)\r", "status=3\r\n$"}, {"@ try; echo no''thing\r", "\r\nnothing"},
	}},
	{"keep", []turn{
		{"@ try --name kept -- sh -c 'echo x >new; exit 3'\r", asked}, {"k\r", "zsbx try apply "}, {"", "$"},
		{"echo sta''tus=$? $(ls)\r", "status=3\r\n$"}, {"@ try show kept\r", "+ new"},
	}},
	{"end of input", []turn{
		{"@ try --name kept -- sh -c 'echo x >new; exit 3'\r", asked}, {"\x04", "zsbx try apply "}, {"", "$"},
		{"echo sta''tus=$? $(ls)\r", "status=3\r\n$"}, {"@ try show kept\r", "+ new"},
	}},
	{"interrupt", []turn{
		{"@ try --name kept -- sh -c 'echo x >new; exit 3'\r", asked}, {"\x03", "^C\r\nzsbx: hint: zsbx try show "}, {"", "$"},
		{"echo sta''tus=$? $(ls)\r", "status=3\r\n$"}, {"@ try show kept\r", "+ new$"},
		{"sleep 1000\r", ""}, {"", ""}, {"\x03", "$"}, {"echo sta''tus=$?\r", "status=130"},
	}},
	{"quit", []turn{
		{"@ try --name kept -- sh -c 'echo x >new; exit 3'\r", asked}, {"\x1c", "zsbx try apply "}, {"", "$"},
		{"echo sta''tus=$? $(ls)\r", "status=3\r\n$"}, {"@ try show kept\r", "+ new"},
	}},
	{"garbage", []turn{
		{"@ try -- sh -c 'echo x >new'\r", asked}, {"\r", asked}, {"apply\r", asked}, {"\x1b[A y\r", asked}, {" A \r", "applied 1 change"},
		{"", "$"}, {"echo sta''tus=$? $(cat new)\r", "status=0 x"},
	}},
	{"difference", []turn{
		{"echo one >f; echo two >g\r", "$"}, {"@ try -- sh -c 'echo more >>f; rm g; exit 3'\r", asked},
		{"d\r", "+++ b/f"}, {"", "+more"}, {"", "- g: removed file"}, {"", asked}, {"t\r", "$"}, {"echo sta''tus=$? $(ls)\r", "status=3 f g"},
	}},
	{"a long difference", []turn{
		{"@ try -- sh -c 'for i in $(seq 30); do seq 100000 >f$i; done; exit 3'\r", asked}, {"d\r", "+20"}, {"\x03", asked}, {"t\r", "thrown away$"},
		{"echo sta''tus=$? $(ls)\r", "status=3\r\n$"},
	}},
	{"choose", []turn{
		{"mkdir d; chmod 755 d\r", "$"},
		{"@ try --name part -- sh -c 'echo x >a; mkdir b; echo 1 >b/1; echo 2 >b/2; chmod 700 d; echo x >d/.envrc'\r", "1 needs a look"}, {"", asked},
		{"c\r", "add a (1 of 4)"}, {"", askedPart}, {"d\r", "+x"}, {"", askedPart}, {"a\r", "\nb/: 3 added (2 of 4)"}, {"", askedPart},
		{"b\r", asked}, {"c\r", askedPart}, {"a\r", askedPart}, {"?\r", askedPart}, {"l\r", "change d/ (3 of 4)"}, {"", askedPart}, {"a\r", "add d/.envrc: a shell"}, {"", askedPart},
		{"l\r", "applied 2 changes; 4 left in the layer\r\nzsbx: hint: zsbx try show "}, {"", "zsbx try discard "}, {"", "$"},
		{"echo sta''tus=$? $(stat -c %a d) $(find . -type f)\r", "status=0 700 ./a\r\n$"}, {"@ try apply part\r", "applied 4 changes"},
	}},
	{"what is below a directory", []turn{
		{"mkdir d e; echo 1 >d/1; echo 2 >d/2; echo 1 >e/1\r", "$"},
		{"@ try -- sh -c 'rm d/1 d/2; echo 3 >d/3; echo 2 >e/1'\r", asked}, {"c\r", "\nd/: 1 added, 2 removed (1 of 2)"}, {"", askedPart},
		{"l\r", "change e/1 (2 of 2)"}, {"", askedPart}, {"b\r", asked}, {"t\r", "thrown away$"},
	}},
	{"a conflict", []turn{
		{"echo one >f; echo two >g\r", "$"}, {"@ try -- sh -c 'echo x >f; echo x >g; exit 3'\r", asked}, {"\x1a", "Stopped$"},
		{"echo out >f\r", "$"}, {"fg\r", ""}, {"a\r", "not applied: "}, {"", "--theirs "}, {"", "$"}, {"echo sta''tus=$? $(cat f g)\r", "status=3 out x"},
	}},
	{"a conflict in a part", []turn{
		{"echo one >f\r", "$"}, {"@ try -- sh -c 'echo x >f; echo x >g; exit 3'\r", asked}, {"\x1a", "Stopped$"},
		{"echo out >f\r", "$"}, {"fg\r", ""}, {"c\r", "change f (1 of 2)"}, {"", askedPart}, {"a\r", "add g (2 of 2)"}, {"", askedPart},
		{"l\r", "/f --theirs "}, {"", "/f --ours "}, {"", "$"}, {"echo sta''tus=$? $(cat f; ls)\r", "status=3 out f\r\n$"},
	}},
	{"a raw terminal", []turn{
		{"@ try -- sh -c 'stty raw -echo -isig; printf \"\\033[?1049h\"; echo x >new; exit 3'\r", asked}, {"a\r", "applied 1 change"}, {"", "$"},
		{"stty sane; echo sta''tus=$? $(cat new)\n", "status=0 x"},
	}},
	{"a command that reads", []turn{
		{"@ try -- sh -c 'echo re''ady; cat >got'\r", "ready"}, {"hello\r", "hello"}, {"\x04", asked}, {"a\r", "applied 1 change"}, {"", "$"},
		{"echo sta''tus=$? $(cat got)\r", "status=0 hello"},
	}},
	{"a new terminal", []turn{
		{"@ try -t -- sh -c 'tty; echo x >new; exit 3'\r", "/dev/pts/"}, {"", asked}, {"a\r", "applied 1 change"}, {"", "$"},
		{"echo sta''tus=$? $(cat new)\r", "status=3 x"},
	}},
	{"no input", []turn{
		{"@ try -- sh -c 'echo x >new; exit 3' </dev/null\r", "zsbx try discard "}, {"", "$"}, {"echo sta''tus=$? $(ls)\r", "status=3\r\n$"},
	}},
	{"errors elsewhere", []turn{
		{"@ try -- sh -c 'echo x >new; exit 3' 2>err\r", "$"}, {"echo sta''tus=$? $(ls)\r", "status=3 err\r\n$"}, {"tail -n 1 err\r", "zsbx: hint: zsbx try discard "},
	}},
	{"nothing kept running", []turn{
		{"@ try --keep -- sh -c 'echo x >new; exit 3'\r", asked}, {"a\r", "applied 1 change"}, {"", "$"}, {"echo sta''tus=$? $(cat new)\r", "status=3 x"},
	}},
	{"something kept running", []turn{
		{"@ try --keep --name kept -- sh -c 'echo x >new; sleep 1000 & exit 3'\r", "which has not ended"}, {"", "$"}, {"echo sta''tus=$? $(ls)\r", "status=3\r\n$"},
		{"@ reap kept\r", "$"}, {"@ try show kept\r", "+ new"},
	}},
	{"with reasons", []turn{
		{"@ try --explain -- sh -c 'echo x >new; echo x >../y; exit 3'\r", "../y"}, {"", asked}, {"a\r", "applied 1 change"}, {"", "$"},
		{"echo sta''tus=$? $(cat new)\r", "status=3 x"},
	}},
	{"never", []turn{
		{"@ try --apply=never -- sh -c 'echo x >new; exit 3'\r", "zsbx try discard "}, {"", "$"}, {"echo sta''tus=$? $(ls)\r", "status=3\r\n$"},
	}},
	{"killed by a signal", []turn{
		{"@ try -- sh -c 'echo x >new; kill -9 $$'\r", asked}, {"a\r", "applied 1 change"}, {"", "$"}, {"echo sta''tus=$? $(cat new)\r", "status=137 x"},
	}},
	{"interrupted command", []turn{
		{"@ try -- sh -c 'echo x >new; echo re''ady; exec sleep 1000'\r", "ready"}, {"\x03", asked}, {"k\r", "$"}, {"echo sta''tus=$? $(ls)\r", "status=130\r\n"},
	}},
}

const (
	asked     = "throw away [t]? "
	askedPart = "back [b]? "
)

func TestTryTerminal(t *testing.T) {
	t.Parallel()
	needLayers(t)
	zsbx := asZsbx(t)
	for _, d := range tryDialogues {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			turns := append([]turn{{"mkdir tree; cd tree\r", "$"}}, d.turns...)
			hold(t, "sh -i", zsbx+" ", turns)
		})
	}
}

// TestTryHangup: when the terminal goes while zsbx asks, what the command wrote is kept.
func TestTryHangup(t *testing.T) {
	t.Parallel()
	needLayers(t)
	zsbx := asZsbx(t)
	home := t.TempDir()
	c := openCommand(zsbx, "try", "--name", "kept", "--", "sh", "-c", "echo x >new; exit 3")
	c.Dir = t.TempDir()
	c.Env = append(c.Env, "HOME="+home, "XDG_STATE_HOME=")
	master, err := pty.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	var shown []byte
	for b := make([]byte, 1); !asks(shown); shown = append(shown, b...) {
		if _, err := master.Read(b); err != nil {
			t.Fatalf("%v after %s", err, shown)
		}
	}
	master.Close()
	_ = c.Wait()
	if c.ProcessState.ExitCode() != 3 {
		t.Errorf("it ended with %v", c.ProcessState)
	}
	show := openCommand(zsbx, "try", "show", "kept")
	show.Env = append(show.Env, "HOME="+home, "XDG_STATE_HOME=")
	if out, err := show.CombinedOutput(); err != nil || !strings.Contains(string(out), "+ new ") {
		t.Errorf("%v: %s", err, out)
	}
}

// needLayers skips a test where zsbx try can't work.
func needLayers(t *testing.T) {
	t.Helper()
	if why := noLayers(); why != "" {
		testkit.Lacks(t, testkit.UserNS, why)
	}
}
