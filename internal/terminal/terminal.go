package terminal

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Ask asks on the terminal, never on stdin, which belongs to the command: a script's input
// is no answer. The answer is in lower case, without space around it. It is an error if
// nobody answered.
func Ask(question string) (string, error) { return AskUntil(nil, question) }

// ErrInterrupted says that a signal came instead of an answer.
var ErrInterrupted = errors.New("interrupted")

// AskUntil is Ask, but ends when a signal is received. Then nothing else may read the terminal any more: what is
// typed next would be lost.
func AskUntil(signals <-chan os.Signal, question string) (string, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer tty.Close()
	defer settle(int(tty.Fd()))()
	fmt.Fprint(tty, question)
	type line struct {
		text string
		err  error
	}
	typed := make(chan line, 1)
	go func() {
		text, err := bufio.NewReader(tty).ReadString('\n')
		typed <- line{text, err}
	}()
	select {
	case l := <-typed:
		return strings.ToLower(strings.TrimSpace(l.text)), l.err
	case <-signals:
		return "", ErrInterrupted
	}
}

// settle drops what was typed before the question, and makes the terminal read lines. It
// disables editing keys that are printable characters or escape: a command can make the
// terminal answer to its output (DECRQM: "ESC [ ? 25 ; 1 $ y"). If $ were the key that
// erases the line, only "y" would be left, and the next return would send it. back
// restores the settings.
func settle(fd int) (back func()) {
	was, err := unix.IoctlGetTermios(fd, GetSettings)
	if err != nil {
		return func() {}
	}
	now := *was
	now.Iflag |= unix.ICRNL
	now.Iflag &^= unix.INLCR | unix.IGNCR
	now.Lflag |= unix.ICANON | unix.ECHO | unix.ISIG
	now.Lflag &^= unix.EXTPROC
	for i, key := range now.Cc {
		const escape, del = 0x1b, 0x7f
		if key >= ' ' && key != del || key == escape {
			now.Cc[i] = noKey
		}
	}
	if unix.IoctlSetTermios(fd, setAndFlush, &now) != nil {
		return func() {}
	}
	return func() { _ = unix.IoctlSetTermios(fd, SetSettings, was) }
}
