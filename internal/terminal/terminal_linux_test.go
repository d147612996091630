package terminal

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/testkit"
)

// TestAsk: what the terminal answered to a command, before the question or after it, is not part of
// the user's answer. Afterwards the settings are the command's again. The control: without Ask, all
// except the "y" is erased.
func TestAsk(t *testing.T) {
	if how := os.Getenv("ZSBX_TEST_ASK"); how != "" {
		ask(how)
		return
	}
	const reply = "\x1b[?25;1$y"
	for _, c := range []struct{ how, early, late, want string }{
		{"read", reply, "\n", `"y"`},
		{"Ask", reply, "\n", `""`},
		{"Ask", "", reply + "\n", fmt.Sprintf("%q", reply)},
		{"Ask", reply, "Y\n", `"y"`},
	} {
		p := exec.Command(os.Args[0], "-test.run=^TestAsk$")
		p.Env = append(os.Environ(), "ZSBX_TEST_ASK="+c.how)
		master, err := pty.Start(p)
		if err != nil {
			t.Fatal(err)
		}
		watchdog := time.AfterFunc(testkit.Patience, func() { _ = p.Process.Kill() })
		in, out := bufio.NewReader(master), ""
		until := func(word string) {
			for b, err := in.ReadByte(); err == nil; b, err = in.ReadByte() {
				out += string(rune(b))
				if strings.HasSuffix(out, word) {
					return
				}
			}
		}
		until("ready")
		fmt.Fprint(master, c.early)
		if n := len(c.early); n > 0 {
			until(c.early[n-1:]) // what is echoed is in the terminal's buffer
		}
		_ = p.Process.Signal(unix.SIGUSR1)
		until("sure? ")
		fmt.Fprint(master, c.late)
		until("end")
		if !strings.Contains(out, "answer "+c.want+" kill '$' end") {
			t.Errorf("%s, %q, %q: %q", c.how, c.early, c.late, out)
		}
		_ = p.Wait()
		watchdog.Stop()
		master.Close()
	}
}

// ask is the process that asks, after what a command may have done.
func ask(how string) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	fd := int(tty.Fd())
	s, _ := unix.IoctlGetTermios(fd, GetSettings)
	s.Cc[unix.VKILL] = '$'
	_ = unix.IoctlSetTermios(fd, SetSettings, s)
	begin := make(chan os.Signal, 1)
	signal.Notify(begin, unix.SIGUSR1)
	fmt.Print("ready")
	<-begin
	answer := ""
	if how == "Ask" {
		answer, _ = Ask("sure? ")
	} else {
		fmt.Print("sure? ")
		answer, _ = bufio.NewReader(tty).ReadString('\n')
		answer = strings.TrimSpace(answer)
	}
	s, _ = unix.IoctlGetTermios(fd, GetSettings)
	fmt.Printf("answer %q kill %q end", answer, s.Cc[unix.VKILL])
}
