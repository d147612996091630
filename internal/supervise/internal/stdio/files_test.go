//go:build unix

package stdio

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// start runs a script of sh(1) with the files.
func start(t *testing.T, f *Files, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = f.Command[0], f.Command[1], f.Command[2]
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f.CloseCommand()
	f.Begin(false)
	return cmd
}

// finish waits for the end of the command and of its output.
func finish(f *Files, cmd *exec.Cmd) {
	for _, p := range f.Pumps {
		<-p.Over
	}
	_ = cmd.Wait()
	f.Close()
}

// TestFiles: readers and writers that are not files get and give everything.
func TestFiles(t *testing.T) {
	in := strings.Repeat("0123456789", 50_000)
	var out, problems bytes.Buffer
	f := &Files{}
	if err := f.Open(strings.NewReader(in), &out, &problems, 0, nil); err != nil {
		t.Fatal(err)
	}
	finish(f, start(t, f, "cat; echo x >&2"))
	if out.String() != in || problems.String() != "x\n" {
		t.Errorf("%d bytes, %q", out.Len(), problems.String())
	}
	f = &Files{}
	if err := f.Open(nil, nil, &out, 0, nil); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	finish(f, start(t, f, "cat; echo gone; echo there >&2"))
	if out.String() != "there\n" {
		t.Errorf("without standard output: %q", out.String())
	}
}

// marker makes a file once something was written.
type marker struct {
	bytes.Buffer
	file string
}

func (m *marker) Write(b []byte) (int, error) {
	_ = os.WriteFile(m.file, nil, 0o600)
	return m.Buffer.Write(b)
}

// TestLimit: as much passes as is allowed, of both together.
func TestLimit(t *testing.T) {
	var problems bytes.Buffer
	out := marker{file: filepath.Join(t.TempDir(), "written")}
	exceeded := make(chan struct{})
	f := &Files{}
	if err := f.Open(nil, &out, &problems, 6, func() { close(exceeded) }); err != nil {
		t.Fatal(err)
	}
	cmd := start(t, f, "printf 1234; until [ -e "+out.file+" ]; do sleep 0.01; done; printf 5678 >&2; exec sleep 1000")
	<-exceeded
	_ = cmd.Process.Kill()
	finish(f, cmd)
	if out.String()+problems.String() != "123456" {
		t.Errorf("%q, %q", out.String(), problems.String())
	}
}

// broken is a writer that always fails.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestBrokenWriter: the command gets SIGPIPE, and the error is returned.
func TestBrokenWriter(t *testing.T) {
	f := &Files{}
	if err := f.Open(nil, broken{}, io.Discard, 0, nil); err != nil {
		t.Fatal(err)
	}
	cmd := start(t, f, "exec yes")
	finish(f, cmd)
	st := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if err := f.Pumps[0].Err; !errors.Is(err, syscall.ENOSPC) || !st.Signaled() || st.Signal() != syscall.SIGPIPE {
		t.Errorf("%v, %v", err, cmd.ProcessState)
	}
}
