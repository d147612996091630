package track_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/track"
)

// crashEnv makes this test binary start a session and wait to be killed.
const crashEnv = "ZSBX_TEST_CRASH"

func TestMain(m *testing.M) {
	sandbox.Init()
	if name := os.Getenv(crashEnv); name != "" {
		o := sandbox.Options{Args: []string{"sh", "-c", "sleep 1000 & echo $! >pid; wait"}, Name: name, TrackOnly: true, Keep: true}
		_, _ = sandbox.Run(context.Background(), &policy.Policy{}, o)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestReap: a session of a program that was killed is found by its name, listed, and ended.
func TestReap(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	st, err := track.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Get("job-7"); !errors.Is(err, track.ErrNotFound) {
		t.Errorf("before: %v", err)
	}
	crash := exec.Command(os.Args[0])
	crash.Dir = home
	crash.Env = append(os.Environ(), crashEnv+"=job-7")
	if err := crash.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if !testkit.Within(testkit.Patience, func() bool {
		b, _ := os.ReadFile(filepath.Join(home, "pid"))
		pid, _ = strconv.Atoi(string(b[:max(len(b)-1, 0)]))
		return pid > 0
	}) {
		t.Fatal("the command does not begin")
	}
	s, err := st.Get("job-7")
	if err != nil || s.Life != track.Running || len(s.Procs) == 0 || s.Name != "job-7" {
		t.Errorf("%+v, %v", s, err)
	}
	if err := crash.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = crash.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := st.Reap(ctx, "job-7")
	if errors.Is(err, track.ErrNotFound) {
		return // the keeper was faster
	}
	if err != nil || !r.Done() {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); err == nil && !testkit.Within(testkit.Patience, func() bool {
		_, err := os.Stat("/proc/" + strconv.Itoa(pid))
		return err != nil
	}) {
		t.Error("a process is left")
	}
	if all, err := st.List(); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}
