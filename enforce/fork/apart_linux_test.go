package fork

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStartApart: the program is no child of this process, has neither its
// session nor its files, and a failure to start it is told.
func TestStartApart(t *testing.T) {
	dir := t.TempDir()
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	const script = `pwd; echo "$A"; cut -d' ' -f4,6 /proc/$$/stat; ls -m /proc/$$/fd; echo end`
	c := &Command{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: []string{"A=b", "PATH=/usr/bin:/bin"}, Dir: "/", Files: []*os.File{in, out, out}}
	if err := StartApart(c); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil); err != syscall.ECHILD {
		t.Errorf("there is a child: %d, %v", pid, err)
	}
	var lines []string
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		b, err := os.ReadFile(out.Name())
		if lines = strings.Split(strings.TrimSpace(string(b)), "\n"); lines[len(lines)-1] == "end" {
			break
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%q, %v", b, err)
		}
	}
	if lines[0] != "/" || lines[1] != "b" || lines[3] != "0, 1, 2" && lines[3] != "0, 1, 10, 2" {
		t.Errorf("%q", lines)
	}
	var parent, session int
	if f := strings.Fields(lines[2]); len(f) == 2 {
		parent, session = atoi(f[0]), atoi(f[1])
	}
	if self, _, _ := syscall.Syscall(syscall.SYS_GETSID, 0, 0, 0); parent == os.Getpid() || parent == 0 || session == int(self) || session == 0 {
		t.Errorf("parent %d, session %d, like this process's", parent, session)
	}
	var se *StepError
	if err := StartApart(&Command{Path: dir + "/none", Args: []string{"none"}}); !errors.As(err, &se) || se.Stage != "exec" || se.Errno != syscall.ENOENT {
		t.Errorf("a program that is not there: %v", err)
	}
}

func atoi(s string) int {
	n := 0
	for _, c := range s {
		n = n*10 + int(c-'0')
	}
	return n
}
