package resolve

import (
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/syntax"
	"github.com/zsbx/zsbx/policy"
)

// Some variables of the caller say what is not true for the command. Their values change.

// makeVariables are those in which make(1), and cargo, name the pipe or FIFO of their job server.
var makeVariables = []string{"MAKEFLAGS", "MFLAGS", "CARGO_MAKEFLAGS"}

// withoutJobServer returns the value of one of makeVariables without the words about a job server
// that the command can't reach. The descriptors of a job server stay with the caller: a command
// gets only 0 to 2. A make that is told of such a server complains about a missing "+" and runs one
// job at a time. Without the words it starts another job server, for the jobs that -jN allows.
// open reports whether the command may use a FIFO.
func withoutJobServer(value string, open func(fifo string) bool) string {
	// After " -- " come variables, whose values may be anything.
	flags, variables, more := strings.Cut(value, " -- ")
	words := strings.Split(flags, " ")
	unreachable := func(word string) bool { return namesJobServer(word) && !namesOpenFIFO(word, open) }
	if !slices.ContainsFunc(words, unreachable) {
		return value
	}
	words = slices.DeleteFunc(words, unreachable)
	// Without a job server, -j without a number would mean no limit.
	words = slices.DeleteFunc(words, func(word string) bool { return word == "-j" })
	flags = strings.Join(words, " ")
	if more {
		flags += " -- " + variables
	}
	return flags
}

// namesJobServer reports whether a flag of make(1) names a job server.
func namesJobServer(word string) bool {
	return strings.HasPrefix(word, "--jobserver-auth=") || strings.HasPrefix(word, "--jobserver-fds=")
}

// namesOpenFIFO reports whether a flag of make(1) names a FIFO that may be used.
func namesOpenFIFO(word string, open func(fifo string) bool) bool {
	fifo, named := strings.CutPrefix(word, "--jobserver-auth=fifo:")
	return named && open(fifo)
}

// jobServer changes what the caller's variables say about a job server.
func (rs *resolver) jobServer(vars map[string]envVar) {
	open := func(fifo string) bool { return rs.r.Allowed(fifo, policy.Read|policy.Write).Allowed }
	for _, name := range makeVariables {
		if v, ok := vars[name]; ok && v.keep {
			v.value = withoutJobServer(v.value, open)
			vars[name] = v
		}
	}
}

// Tracked returns the environment of a command that is only tracked: the caller's, without a job
// server's descriptors, which it does not get either. It can open a FIFO.
func Tracked(env []string) []string {
	all := slices.Clone(env)
	for i, e := range all {
		name, value, _ := strings.Cut(e, "=")
		if slices.Contains(makeVariables, name) {
			all[i] = name + "=" + withoutJobServer(value, func(string) bool { return true })
		}
	}
	return all
}

// logicalDir returns the caller's PWD if it names the working directory, by links that the command
// sees as well, and otherwise the working directory itself. Shells then say as outside where they
// are ("pwd -L").
func (rs *resolver) logicalDir() string {
	h := rs.host
	pwd := h.Getenv("PWD")
	if pwd == h.Dir || !path.IsAbs(pwd) || path.Clean(pwd) != pwd || syntax.HasControl(pwd) {
		return h.Dir
	}
	real, links, st, err := h.Trail(pwd)
	if err != nil || real != h.Dir || !st.Mode.IsDir() {
		return h.Dir
	}
	unseen := func(link string) bool {
		for _, top := range []string{"/tmp", "/var/tmp", "/proc", "/dev"} { // the command may have private ones
			if host.Within(link, top) && !host.Within(h.Dir, top) {
				return true
			}
		}
		return rs.r.Private.Home.Is() && host.Within(link, h.Way(h.Home).Path)
	}
	if slices.ContainsFunc(links, unseen) {
		return h.Dir
	}
	return pwd
}

// envVar is what was decided about a variable.
type envVar struct {
	value string
	keep  bool
}
