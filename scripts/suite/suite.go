package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// longest are the packages whose tests take longest. If one of them began late, it would run alone
// at the end.
var longest = []string{"./cmd", "./scripts/faults", "./internal/enforce/attack", "./internal/track"}

// longestFirst returns the arguments of go test that run all packages, if args name all of them. go
// test begins with the packages that are named first, and names none twice.
func longestFirst(args []string, processors int) []string {
	all := slices.Index(args, "./...")
	if all < 0 {
		return args
	}
	several := []string{"-p", strconv.Itoa(processors + 1)}
	return slices.Concat(several, args[:all], longest, args[all:])
}

// An event is what go test -json says, as go doc test2json describes it.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// A test is named by its package and its own name.
type test struct{ pkg, name string }

// A suite is what was seen of a run of go test.
type suite struct {
	packages  map[string]string // by the program or file that a package brings
	listed    map[string]bool   // packages that the tests' set-up installs
	installed func(program string) bool
	output    map[test]string
	ended     map[test]string // pass, fail or skip
	reasons   map[test]string // why it was skipped
	lacks     map[test]string // the package, if one is missing
	parts     map[string]int  // scripts of which lines were left out, by package
}

func newSuite(packages string, installed func(string) bool) *suite {
	s := &suite{
		packages:  map[string]string{},
		listed:    map[string]bool{},
		installed: installed,
		output:    map[test]string{},
		ended:     map[test]string{},
		reasons:   map[test]string{},
		lacks:     map[test]string{},
		parts:     map[string]int{},
	}
	for line := range strings.Lines(packages) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		s.listed[words[0]] = true
		for _, brought := range words[1:] {
			s.packages[brought] = words[0]
		}
	}
	return s
}

// handle takes an event, and returns what go test would print now.
func (s *suite) handle(e event) string {
	t := test{e.Package, e.Test}
	switch e.Action {
	case "output", "build-output":
		if t.name == "" {
			return packageLine(e.Output)
		}
		s.output[t] += e.Output
		return ""
	case "pass", "fail", "skip":
	default:
		return ""
	}
	if t.name == "" {
		return s.unfinished(t.pkg, e.Action)
	}
	out := s.output[t]
	delete(s.output, t)
	s.ended[t] = e.Action
	switch e.Action {
	case "fail":
		return withoutProgress(out)
	case "skip":
		s.skipped(t, out)
	case "pass":
		s.leftOut(out)
	}
	return ""
}

// unfinished returns what the tests wrote that were running when their program died.
func (s *suite) unfinished(pkg, action string) string {
	var out string
	for t, text := range s.output {
		if t.pkg != pkg {
			continue
		}
		if action == "fail" {
			out += withoutProgress(text)
		}
		delete(s.output, t)
	}
	return out
}

// packageLine leaves out what go test prints only with -v.
func packageLine(line string) string {
	if line == "PASS\n" || strings.HasPrefix(line, "=== ") {
		return ""
	}
	return line
}

// withoutProgress leaves out the lines that say only that a test goes on.
func withoutProgress(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "=== ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

var (
	said         = regexp.MustCompile(`(?m)^ +\S+\.go:\d+: (.+)$`)
	notInstalled = regexp.MustCompile(`^(\S+) is not installed`)
	lastLine     = regexp.MustCompile(`(?m)^ +> (\[.*)\n\s*(?:--- .*\s*)?\z`)
	condition    = regexp.MustCompile(`\[(!?)(?:exec|exists):([^]$]+)\]`)
	feature      = regexp.MustCompile(`^tinyscheme: `)
)

// skipped notes why a test was skipped: for a script, by its line that skips.
func (s *suite) skipped(t test, out string) {
	s.reasons[t] = "it does not say why"
	if m := said.FindStringSubmatch(out); m != nil {
		s.reasons[t] = m[1]
	}
	if m := lastLine.FindStringSubmatch(out); m != nil {
		for _, c := range condition.FindAllStringSubmatch(m[1], -1) {
			if c[1] == "!" && !s.installed(c[2]) {
				s.lacks[t] = s.packageOf(c[2])
			}
		}
		s.reasons[t] = m[1]
		return
	}
	if m := notInstalled.FindStringSubmatch(s.reasons[t]); m != nil {
		s.lacks[t] = s.packageOf(m[1])
	}
	if feature.MatchString(s.reasons[t]) {
		s.lacks[t] = "tinyscheme"
	}
}

// leftOut notes the programs for lack of which lines of a script did nothing.
func (s *suite) leftOut(out string) {
	missing := map[string]bool{} // of those that the set-up installs
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "> [") {
			continue
		}
		for _, c := range condition.FindAllStringSubmatch(line, -1) {
			name := s.packageOf(c[2])
			if !s.installed(c[2]) && s.listed[name] {
				missing[name] = true
			}
		}
	}
	for p := range missing {
		s.parts[p]++
	}
}

// packageOf returns the package that brings a program or a file, or the name if it is not among
// those that the tests' set-up installs.
func (s *suite) packageOf(program string) string {
	name := program[strings.LastIndex(program, "/")+1:]
	return cmp.Or(s.packages[program], s.packages[name], name)
}

// summary returns the last line. Only tests that have no subtests are counted.
func (s *suite) summary(ok bool) string {
	counts := map[string]int{}
	parents := map[test]bool{}
	for t := range s.ended {
		for i, c := range t.name {
			if c == '/' {
				parents[test{t.pkg, t.name[:i]}] = true
			}
		}
	}
	need := map[string]int{}
	others := 0
	for t, how := range s.ended {
		if parents[t] {
			continue
		}
		counts[how]++
		switch {
		case how != "skip":
		case s.lacks[t] != "":
			need[s.lacks[t]]++
		default:
			others++
		}
	}
	line := fmt.Sprintf("ok: %d tests", counts["pass"])
	if !ok {
		line = fmt.Sprintf("FAILED: %d tests passed, %d failed", counts["pass"], counts["fail"])
	}
	why := needs(need)
	if others > 0 {
		why = append(why, fmt.Sprintf("%d for other reasons", others))
	}
	line += fmt.Sprintf(", %d skipped", counts["skip"])
	if len(why) > 0 {
		line += ": " + strings.Join(why, ", ")
	}
	if len(s.parts) > 0 {
		line += "; parts of scripts: " + strings.Join(needs(s.parts), ", ")
	}
	return line
}

// needs says how many tests need each package.
func needs(counts map[string]int) []string {
	var all []string
	for _, p := range byCount(counts) {
		all = append(all, fmt.Sprintf("%d need %s", counts[p], p))
	}
	return all
}

// byCount returns the keys, the highest count first.
func byCount(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
}

// list writes each skipped test and why it was.
func (s *suite) list(w io.Writer) {
	var lines []string
	for t, why := range s.reasons {
		lines = append(lines, fmt.Sprintf("skipped: %s %s: %s\n", t.pkg, t.name, why))
	}
	slices.Sort(lines)
	for _, l := range lines {
		io.WriteString(w, l)
	}
}
