package cmd

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/enforce/sandbox"
)

// The exit statuses of zsbx itself, those of env(1) and timeout(1). A command
// that was started gives its own.
const (
	exitOK        = 0
	exitNo        = 1   // check, ps, reap: the answer is no
	exitAfter     = 1   // run: the command ended with 0, and zsbx failed after it
	exitTimeout   = 124 // the command was ended by --timeout
	exitFailed    = 125 // zsbx failed, or refused; the command was not run
	exitCannotRun = 126 // the command was found and can't be executed
	exitNotFound  = 127 // the command was not found
	exitSignal    = 128 // plus the number of the signal that ended the command
	exitLost      = 137 // the command was started, and killed without telling how it ended
)

// app is the process that zsbx runs in.
type app struct {
	stdout io.Writer
	stderr io.Writer
	env    []string // NAME=VALUE
	say    *voice
	cfg    settings
	help   bytes.Buffer // what cobra prints
	args   []string     // without the program's name
	mistakes

	// left is the command of a process in the background that has ended and may
	// have left something running.
	left *sandbox.Command
}

// Main runs zsbx with args, without the program's name, and returns the exit
// status: the command's own for run, 0 or 1 for what the other commands
// answer, and otherwise one of those that exec(1p) and timeout(1) use.
func Main(args []string) int {
	sandbox.Init()
	a := &app{stdout: os.Stdout, stderr: os.Stderr, env: os.Environ()}
	if !sandbox.InBackground() {
		out := a.main(args)
		if out.Signal != 0 {
			dieBy(out.Signal)
		}
		return out.Status
	}
	out := a.main(args[1:])
	if err := sandbox.Leave(out); err != nil {
		return exitFailed
	}
	if a.left != nil {
		a.left.Served()
	}
	return out.Status
}

func (a *app) main(args []string) sandbox.Outcome {
	a.args, a.say = args, &voice{w: a.stderr}
	var err error
	if a.cfg, err = loadSettings(a.env); err != nil {
		// Who looks, or ends what is left running, goes on.
		if len(args) == 0 || !slices.Contains([]string{"reap", "ps", "check", "version"}, args[0]) {
			return a.say.report(err)
		}
		for _, e := range leaves(err) {
			a.say.warn("%v", e)
		}
	}
	a.say.color = a.cfg.color(a.env, a.stderr)
	root := newRoot(a, args)
	if err = root.Execute(); a.help.Len() > 0 {
		err = errors.Join(err, a.printText(a.help.String()))
	}
	return a.say.report(err)
}

// Root builds all of zsbx's commands, for programs that write documentation
// from them. Running them is Main's work.
func Root() *cobra.Command {
	a := &app{stdout: io.Discard, stderr: io.Discard}
	a.say = &voice{w: a.stderr}
	return newRoot(a, nil)
}

// dieBy ends zsbx by the signal that ended the command. A shell that runs zsbx
// in a script goes on after Ctrl-C unless its child died by SIGINT.
func dieBy(s syscall.Signal) {
	signal.Reset(s)
	_ = syscall.Kill(os.Getpid(), s)
	time.Sleep(time.Second) // the signal may take another thread
}
