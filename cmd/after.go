package cmd

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/learn"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/variables"
	"github.com/zsbx/zsbx/policy"
)

// What is said after a command that failed. zsbx does not know whether the limits are why. Without a
// terminal it says less about programs such as cat(1), which say enough, and grep(1), which fails
// when it finds nothing.

func (o *runFlags) afterFailure(a *app, plan *enforce.Plan, argv []string, res *supervise.Result) {
	terminal := isTerminal(a.stderr)
	a.tellGit(plan, argv)
	told := slices.ContainsFunc(res.Hosts, func(h supervise.HostUse) bool { return h.Refused > 0 }) // with the reason
	if text := closedNet(plan.Policy, argv); text != "" && !told {
		a.say.warn("%s", text)
	}
	silent := among(reading, argv) || res.ExitCode() == exitNo && among(answering, argv)
	if !terminal && silent && !builds(plan.Policy, argv) {
		return
	}
	if text := leftOut(plan.Policy); text != "" {
		a.say.warn("%s", text)
	}
	flags := missingFlags(plan.Policy, argv)
	if flags != nil {
		a.say.hint("%s", a.retyped(argv, flags, quoteArgs(argv)))
	}
	if terminal && plan.Caps.SeccompNotify {
		n := len(a.args) - len(argv)
		a.say.hint("zsbx why %s", quoteArgs(append(withoutValues(a.args[1:n]), argv...)))
	}
}

// answering are programs whose exit status 1 is an answer. reading are those that write no file.
var (
	answering = []string{
		"grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "test", "[", "false", "diff", "cmp", "comm", "expr",
		"which", "pgrep", "pidof", "getent", "command", "type", "mountpoint", "nm-online",
	}
	reading = []string{
		"cat", "ls", "head", "tail", "less", "more", "wc", "file", "stat", "readlink", "realpath", "du", "df", "env",
		"printenv", "id", "ps", "tree", "man", "whoami", "groups", "hostname", "uname", "date", "sleep", "ping",
		"dig", "host", "nslookup",
	}
)

// among reports whether a command is one of programs, or its shell has a line with one of them.
func among(programs, argv []string) bool {
	return slices.ContainsFunc(append(shellPrograms(argv), argv[0]), func(word string) bool {
		return slices.Contains(programs, path.Base(word))
	})
}

// builds reports whether a command is a toolchain's, by its name, or a script or program of the
// project, also one that a shell is to run.
func builds(r *resolve.Resolved, argv []string) bool {
	inProject := func(word string) bool {
		file, st, exists := r.Look(word)
		return exists && st.Mode.IsRegular() && host.Within(file, r.Dir)
	}
	if len(argv) > 1 && isShell(argv[0]) && inProject(argv[1]) {
		return true
	}
	for _, word := range append(shellWords(argv), argv[0]) {
		if strings.Contains(word, "/") && inProject(word) {
			return true
		}
	}
	detected := func(p policy.Named) bool { return strings.HasPrefix(p.Origin.Source, "detected by command ") }
	return slices.ContainsFunc(r.Presets, detected) || len(resolve.PresetsOf(shellPrograms(argv))) > 0
}

func isShell(program string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "zsh", "ksh", "fish"}, path.Base(program))
}

// lineOf returns the line that a shell is given with -c, or "".
func lineOf(argv []string) string {
	at := slices.IndexFunc(argv, func(arg string) bool { return arg == "-c" || arg == "-ec" || arg == "-lc" })
	if at < 1 || at+1 >= len(argv) || !isShell(argv[0]) {
		return ""
	}
	return argv[at+1]
}

// shellWords returns the words of such a line.
func shellWords(argv []string) []string {
	return strings.FieldsFunc(lineOf(argv), func(r rune) bool { return strings.ContainsRune(" \t\n;&|()<>\"'", r) })
}

// mayBeProgram reports whether a word of a shell line can be a program's name, and is no variable,
// flag, number or redirection.
func mayBeProgram(word string) bool {
	other := strings.Contains(word, "=") || strings.ContainsAny(word[:1], "-0123456789<>")
	return !other && !slices.Contains(beforeProgram, word)
}

// shellPrograms returns the words of such a line that stand where a program is named. A word
// elsewhere may be a file's name.
func shellPrograms(argv []string) (names []string) {
	ends := func(r rune) bool { return strings.ContainsRune("\n;&|()`", r) }
	for _, part := range strings.FieldsFunc(lineOf(argv), ends) {
		words := strings.Fields(part)
		if at := slices.IndexFunc(words, mayBeProgram); at >= 0 {
			names = append(names, strings.Trim(words[at], `"'`))
		}
	}
	return names
}

// beforeProgram are words after which a program is named.
var beforeProgram = []string{
	"if", "then", "else", "elif", "while", "until", "do", "!", "{",
	"exec", "command", "env", "time", "nice", "nohup", "timeout", "xargs", "sudo",
}

// missingFlags returns flags without which the command probably could not work: --rw . if no flag
// names a file, unless the command writes nothing or may not write there anyway; and presets of the
// commands that a shell was to run.
func missingFlags(r *resolve.Resolved, argv []string) (flags []string) {
	readOnly := func(p resolve.Path) bool {
		return p.Rule.Origin.Source == "default" && p.Path == r.Dir && p.Access&policy.Write == 0
	}
	reads := slices.Contains(slices.Concat(answering, reading), path.Base(argv[0]))
	if slices.ContainsFunc(r.Paths, readOnly) && !reads && unix.Access(r.Dir, unix.W_OK) == nil {
		all := policy.Read | policy.Write | policy.Exec
		if hint, _ := learn.Open(r, r.Dir, all); hint.Flags == "--rw ." { // else it would open more than a project
			flags = append(flags, "--rw", ".")
		}
	}
	for _, name := range resolve.PresetsOf(shellPrograms(argv)) {
		if !slices.ContainsFunc(r.Presets, func(p policy.Named) bool { return p.Value == name }) {
			flags = append(flags, "--preset", name)
		}
	}
	return flags
}

// leftOut returns one line about variables that the command did not get, or "".
func leftOut(r *resolve.Resolved) string {
	names := r.LeftOut()
	if len(names) == 0 {
		return ""
	}
	how := "--env NAME passes one"
	if slices.ContainsFunc(names[:min(len(names), mostNamed)], variables.SteersLoader) {
		how += ", and --env NAME=VALUE one that steers a loader"
	}
	return fmt.Sprintf("left out of the environment: %s (%s)", few(names), how)
}

// closedNet returns one line about the network, if it is limited and the command needs one by its
// name, or "".
func closedNet(r *resolve.Resolved, argv []string) string {
	names := append([]string{path.Base(argv[0])}, shellPrograms(argv)...)
	at := slices.IndexFunc(names, resolve.UsesNetwork)
	if at < 0 || r.Net.Mode == resolve.NetOpen {
		return ""
	}
	what := "the network was closed"
	switch r.Net.Mode {
	case resolve.NetPorts:
		what = "only the listed TCP ports were open"
	case resolve.NetHosts:
		what = "only the listed hosts could be reached"
	}
	return fmt.Sprintf("%s (%s), which may be why %s failed", what, r.Net.From, shell.Quote(names[at]))
}
