package cmd

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/internal/testkit/internet"
)

// bed runs commands, each in an internet of its own.
type bed struct {
	internet.Options
	env   []string
	act   string   // the beginning of a command line for an act, with a blank after it
	flags []string // of zsbx run
	alone bool     // zsbx can make no namespace
	out   string   // of the last command
	log   string   // what the servers saw of it
}

// newBed returns a bed.
func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{Options: internet.Options{Dir: t.TempDir()}}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(b.Dir+"/home", 0o700); err != nil {
		t.Fatal(err)
	}
	const race = "GORACE=atexit_sleep_ms=0" // otherwise its detector waits a second at each end
	b.env = []string{"HOME=" + b.Dir + "/home", "TMPDIR=/tmp", "LC_ALL=C.UTF-8", race}
	b.act = self + " " + hostsAct + " "
	b.flags = []string{"--rox", self, "--env", race}
	return b
}

// needBed skips a test where there can be no such internet.
func needBed(t *testing.T) {
	t.Helper()
	needLimits(t)
	c, err := internet.Command(internet.Options{Dir: t.TempDir()}, "true")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := c.CombinedOutput(); err != nil {
		testkit.Lacks(t, testkit.UserNS, err, ": ", string(out))
	}
}

// closedPath is what zsbx says where the user has, for example, a ~/go/bin.
var closedPath = regexp.MustCompile(`(?m)^zsbx: warning: on PATH but closed.*\n`)

// run runs a command and returns its exit status.
func (b *bed) run(t *testing.T, argv ...string) int {
	t.Helper()
	c, err := internet.Command(b.Options, argv...)
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(b.Log())
	c.Dir = b.Dir
	c.Env = append(c.Env, b.env...)
	var out bytes.Buffer
	c.Stdout = &out
	c.Stderr = &out
	stop := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
	err = c.Run()
	stop.Stop()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	b.out = strings.TrimSpace(closedPath.ReplaceAllString(out.String(), ""))
	log, err := os.ReadFile(b.Log())
	if err != nil {
		t.Fatal(err, b.out)
	}
	b.log = string(log)
	return c.ProcessState.ExitCode()
}

// zsbx returns the beginning of a command line that runs a command.
func (b *bed) zsbx() (argv []string) {
	argv = append([]string{"zsbx", "run", "--rw", "."}, b.flags...)
	if b.alone {
		argv = append(strings.Fields(b.act+"alone"), argv...)
		argv = append(argv, "--allow-gap", "own-files", "--allow-gap", "hardening")
	}
	return argv
}

// allowing returns a command line that runs a shell script with a network by name.
func (b *bed) allowing(script string, hosts ...string) []string {
	argv := b.zsbx()
	for _, h := range hosts {
		argv = append(argv, "--allow-host", h)
	}
	return append(argv, "--", "sh", "-c", script)
}
