package why

import (
	"cmp"
	_ "embed"
	"fmt"
	"path"
	"strings"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/enforce/answer"
	"github.com/zsbx/zsbx/internal/enforce/trace"
)

// knownFile says what is known about paths and variables.
//
//go:embed known.txt
var knownFile string

// weight returns how likely the refusal of an operation makes a command fail.
func weight(verb string) float64 {
	return cmp.Or(map[string]float64{
		"exec":    60,
		"connect": 50, "bind": 50,
		"create": 40, "write": 40, "remove": 40, "rename": 40, "link": 40,
		"read": 30, "list": 30,
		"call": 10, // programs fall back
	}[verb], 20)
}

// subject returns what an act is about, for example a path or a call. For calls that make
// sockets it adds the family.
func subject(x *trace.Refusal) string {
	a := &x.Act
	if x.Verdict != nil {
		return x.Verdict.Where()
	}
	if a.Op == answer.Signal || a.Op == answer.Trace && a.Path == "" {
		return "process " + a.Name
	}
	if a.Op == answer.Call {
		return subjectOfCall(a)
	}
	switch {
	case a.Path != "":
		return a.Path
	case a.Name != "":
		return "@" + a.Name
	}
	return fmt.Sprintf("port %d (tcp)", a.Port)
}

// families are families of sockets, by the kernel's numbers.
var families = map[uint32]string{
	1:  "AF_UNIX",
	2:  "AF_INET",
	10: "AF_INET6",
	16: "AF_NETLINK",
	17: "AF_PACKET",
	38: "AF_ALG",
	40: "AF_VSOCK",
}

// subjectOfCall returns the name of a call, for example socket(AF_INET).
func subjectOfCall(a *enforce.Act) string {
	if a.Name != "socket" && a.Name != "socketpair" {
		return a.Name
	}
	family := uint32(a.Args[0])
	return fmt.Sprintf("%s(%s)", a.Name, cmp.Or(families[family], fmt.Sprint(family)))
}

// harmless returns why programs continue without what was refused, or "". No program continues
// without another that it wants to execute.
func harmless(home, verb, about, program string) string {
	if verb == "exec" {
		return ""
	}
	for line := range strings.Lines(knownFile) {
		f := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(f) < 3 || f[0] == "read" && verb != "read" && verb != "list" {
			continue
		}
		at := strings.Replace(f[1], "~", home, 1)
		in := strings.Contains("/"+about+"/", "/"+at+"/") // here a whole path begins with two slashes
		if who, _, _ := strings.Cut(f[2], " "); f[0] == "list" {
			named, _ := path.Match(at, about)
			in = named && verb == "list" && program == who
		}
		if in {
			return "usually harmless: " + f[2]
		}
	}
	return ""
}

// wanted returns the variables that a failed command may have wanted: for agents, displays,
// tokens, and for loading things.
func wanted(dropped []string) (all []string) {
	for _, name := range dropped {
		for line := range strings.Lines(knownFile) {
			if is, _ := path.Match(strings.TrimSpace(line), "$"+name); is {
				all = append(all, name)
				break
			}
		}
	}
	return all
}
