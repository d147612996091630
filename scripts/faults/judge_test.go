//go:build linux && amd64

package faults

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/zsbx/zsbx/internal/enforce"
)

// class is the outcome of a case.
type class int

const (
	confined   class = iota // ran to its end, nothing was open
	refusedRun              // did not run, and a message says why
	unsaid                  // only the status tells that it failed, since no message arrived
	gapSaid                 // ran with something open, and a warning named it
	saidLost                // ran, and a message says that its status or end was lost
	ended                   // ended by the signal that was sent
	missed                  // the call that was to fail was not made
	noRuntime               // Go's runtime gave up, or was ended by SIGQUIT, before the command began
	// The rest are bugs of zsbx.
	traceback // Go's runtime gave up, or zsbx panicked
	hang
	lost       // output or status, without a message
	falseGap   // a shortage was taken for something that this machine can't do
	left       // processes, or records that reap does not clear
	unconfined // something was open, without a message
	classes
)

var classNames = [classes]string{"confined", "refused", "unsaid", "gap said", "said lost", "ended", "missed", "no runtime", "TRACEBACK", "HANG", "LOST", "FALSE GAP", "LEFT", "UNCONFINED"}

func (c class) String() string { return classNames[c] }

func (c class) bad() bool { return c >= traceback }

// result is what was seen of a run.
type result struct {
	out, err string
	ran      bool // the command began
	status   syscall.WaitStatus
	hung     bool
	left     []int    // processes
	reap     string   // what is wrong with the records
	signal   bool     // signals were sent, so the command may end by them
	mute     bool     // zsbx could write nothing: neither the output nor a message
	gaps     []string // those that zsbx named because of a shortage, and not without it
}

// judge returns the class, and what indicates it.
func judge(r result) (class, string) {
	open, said := r.open()
	complete := strings.Contains(r.out, "END\n") && strings.Count(r.out, "\nline ") == fillLines
	errs := strings.Contains(r.err, "zsbx: error")
	code := r.status.ExitStatus()
	switch {
	case len(open) > 0 && !said:
		return unconfined, "open: " + strings.Join(open, ", ")
	case r.hung:
		return hang, ""
	case len(r.gaps) > 0:
		return falseGap, strings.Join(r.gaps, ", ")
	case len(r.left) > 0:
		return left, fmt.Sprint("processes ", r.left)
	case r.reap != "":
		return left, r.reap
	case r.withoutRuntime():
		return noRuntime, ""
	case strings.Contains(r.err, "goroutine "):
		return traceback, ""
	case r.ran && complete && code == probeStatus && len(open) > 0:
		return gapSaid, strings.Join(open, ", ")
	case r.ran && complete && code == probeStatus:
		return confined, ""
	case r.signal:
		return ended, ""
	case (r.ran && code != 0 || code == 128+int(syscall.SIGKILL)) && tellsOfEnd(r.err): // this may be before it wrote anything
		return saidLost, ""
	case r.mute && code > 0:
		return unsaid, "status " + statusText(r.status)
	case r.ran:
		return lost, fmt.Sprintf("status %s, output complete: %v", statusText(r.status), complete)
	case r.status.Signaled() || code < 125 || code > 127:
		return lost, "did not run, status " + statusText(r.status)
	case !errs:
		return unsaid, "status " + statusText(r.status)
	}
	return refusedRun, ""
}

// withoutRuntime reports whether nothing ran because Go's runtime got no memory, thread or poller,
// or because SIGQUIT came before zsbx could take it. The runtime says so, and ends with 2.
func (r *result) withoutRuntime() bool {
	if r.ran || r.status.ExitStatus() != 2 {
		return false
	}
	return strings.Contains(r.err, "fatal error: ") || r.signal && strings.Contains(r.err, "SIGQUIT: quit\n")
}

// gapsIn returns the gaps that zsbx named.
func gapsIn(text string) []string {
	var out []string
	for _, g := range enforce.GapNames() {
		for _, form := range []string{"(" + g + ")", "(" + g + ":", "--allow-gap " + g + "\n"} {
			if strings.Contains(text, form) {
				out = append(out, g)
				break
			}
		}
	}
	return append(out, shortGaps(text)...)
}

// shortGaps returns the gaps in the short line.
func shortGaps(text string) []string {
	_, list, ok := strings.Cut(text, "warning: gaps: ")
	list, _, _ = strings.Cut(list, " (")
	if !ok {
		return nil
	}
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// open lists what the command found open, and reports whether zsbx had named all of that.
func (r *result) open() (names []string, said bool) {
	said = true
	for line := range strings.Lines(strings.ReplaceAll(r.out, "\r", "")) {
		if gap, ok := strings.CutPrefix(line, "open\t"); ok {
			gap, name, _ := strings.Cut(strings.TrimSpace(gap), "\t")
			names = append(names, name)
			said = said && (strings.Contains(r.err, "("+gap) || slices.Contains(shortGaps(r.err), gap))
		}
	}
	return names, said
}

// tellsOfEnd reports whether a message says that the command ran and did not
// end by itself.
func tellsOfEnd(text string) bool {
	for _, s := range []string{"exit status was lost", "keeper is gone", "was killed", "was ended", "writing the command's output", "reading the command's output"} {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}

func statusText(ws syscall.WaitStatus) string {
	if ws.Signaled() {
		return ws.Signal().String()
	}
	return fmt.Sprint(ws.ExitStatus())
}
