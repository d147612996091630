package trace

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce/answer"
)

const testTag = "zsbx-4f1a0c52-8a5e-4c7f-9d8a-0123456789ab"

func newTestLog() *Log { return NewLog(strings.TrimPrefix(testTag, "zsbx-"), testTag) }

// logLine returns a message of the kernel as in "log stream --style ndjson".
func logLine(message string) string {
	m, _ := json.Marshal(message)
	return `{"traceID":7254516453012484,"eventMessage":` + strings.ReplaceAll(string(m), "/", `\/`) +
		`,"eventType":"logEvent","source":null,"formatString":"%s","subsystem":"com.apple.sandbox.reporting","category":"violation",` +
		`"threadID":1048577,"senderImageUUID":"A","backtrace":{"frames":[]},"processImagePath":"\/kernel",` +
		`"senderImagePath":"\/System\/Library\/Extensions\/Sandbox.kext\/Contents\/MacOS\/Sandbox","timestamp":"2026-09-24 18:39:12.846012+0200",` +
		`"machTimestamp":1,"messageType":"Error","processID":0,"timezoneName":""}`
}

func TestLogLines(t *testing.T) {
	for text, want := range map[string]Refusal{
		"Sandbox: cat(4615) deny(1) file-read-data /private/etc/hosts": {Program: "cat", Pid: 4615, Count: 1,
			Act: answer.Act{Op: answer.Open, Flags: answer.Read, Path: "/private/etc/hosts"}},
		"4 duplicate reports for Sandbox: cat(4615) deny(1) file-read-metadata /Users/u/a b": {Program: "cat", Pid: 4615, Count: 4,
			Act: answer.Act{Op: answer.Open, Flags: answer.Read, Path: "/Users/u/a b"}},
		"1 duplicate report for Sandbox: sh(7) deny(1) file-write-create /Users/u/made": {Program: "sh", Pid: 7, Count: 1,
			Act: answer.Act{Op: answer.Open, Flags: answer.Write | answer.Creat, Path: "/Users/u/made", Missing: true}},
		"Sandbox: Google Chrome Helper (Renderer)(812) deny(1) mach-lookup com.apple.pasteboard.1": {Program: "Google Chrome Helper (Renderer)", Pid: 812, Count: 1,
			Act: answer.Act{Op: answer.Call, Name: "mach-lookup com.apple.pasteboard.1"}},
		"Sandbox: rm(1) deny(1) file-write-unlink /x":                                       {Program: "rm", Pid: 1, Count: 1, Act: answer.Act{Op: answer.Remove, Path: "/x"}},
		"Sandbox: chmod(1) deny(1) file-write-mode /x":                                      {Program: "chmod", Pid: 1, Count: 1, Act: answer.Act{Op: answer.Metadata, Path: "/x"}},
		"Sandbox: sh(1) deny(1) process-exec* /opt/x":                                       {Program: "sh", Pid: 1, Count: 1, Act: answer.Act{Op: answer.Exec, Path: "/opt/x"}},
		"Sandbox: nc(4002) deny(1) network-outbound remote:*:443":                           {Program: "nc", Pid: 4002, Count: 1, Act: answer.Act{Op: answer.Connect, Port: 443}},
		"Sandbox: nc(4002) deny(1) network-outbound 192.0.2.1:80":                           {Program: "nc", Pid: 4002, Count: 1, Act: answer.Act{Op: answer.Connect, Port: 80}},
		"Sandbox: nc(4002) deny(1) network-bind local:*:8080":                               {Program: "nc", Pid: 4002, Count: 1, Act: answer.Act{Op: answer.Bind, Port: 8080}},
		"Sandbox: nc(4002) deny(1) network-outbound /private/var/run/mDNSResponder":         {Program: "nc", Pid: 4002, Count: 1, Act: answer.Act{Op: answer.Connect, Path: "/private/var/run/mDNSResponder"}},
		"Sandbox: foo(9) deny(2) process-fork":                                              {Program: "foo", Pid: 9, Count: 1, Act: answer.Act{Op: answer.Call, Name: "process-fork"}},
		"Sandbox: kill(9) deny(1) signal target:others":                                     {Program: "kill", Pid: 9, Count: 1, Act: answer.Act{Op: answer.Call, Name: "signal target:others"}},
		`Sandbox: x(9) deny(1) file-ioctl path:/dev/dtracehelper ioctl-command:(_IO "h" 4)`: {Program: "x", Pid: 9, Count: 1, Act: answer.Act{Op: answer.Call, Name: `file-ioctl path:/dev/dtracehelper ioctl-command:(_IO "h" 4)`}},
	} {
		l := newTestLog()
		l.Line([]byte(logLine(text + "\n" + testTag)))
		got := l.Report()
		if len(got.Refusals) != 1 {
			t.Errorf("%s: %+v", text, got)
			continue
		}
		r := got.Refusals[0]
		if r.Program != want.Program || r.Pid != want.Pid || r.Count != want.Count || r.Errno != "EPERM" || !r.Proved || r.Unknown() {
			t.Errorf("%s: %+v", text, r)
		}
		if g, w := r.Act, want.Act; g.Op != w.Op || g.Flags != w.Flags || g.Path != w.Path || g.Name != w.Name || g.Port != w.Port || g.Missing != w.Missing {
			t.Errorf("%s: %+v, want %+v", text, g, w)
		}
	}
}

// TestLogOthers: messages that are not the kernel's, another session's, or about zsbx's own
// questions are ignored.
func TestLogOthers(t *testing.T) {
	l := newTestLog()
	good := "Sandbox: cat(1) deny(1) file-read-data /x\n" + testTag
	for _, line := range []string{
		`Filtering the log data using "processID == 0"`, "", "{", "null", "[]", `{"eventMessage":3}`,
		logLine("Sandbox: cat(1) deny(1) file-read-data /x"),
		logLine("Sandbox: cat(1) deny(1) file-read-data /x\nzsbx-other"),
		logLine("System Policy: cat(1) deny(1) file-read-data /x\n" + testTag),
		logLine("Sandbox: cat(1) allow file-read-data /x\n" + testTag),
		logLine("Sandbox: cat(x) deny(1) file-read-data /x\n" + testTag),
		logLine("Sandbox: cat deny(1) file-read-data /x\n" + testTag),
		logLine("many duplicate reports for Sandbox: cat(1) deny(1) file-read-data /x\n" + testTag),
		logLine("Sandbox: zsbx(1) deny(1) mach-lookup " + testTag + ".deny\n" + testTag),
		strings.Replace(logLine(good), `"processID":0`, `"processID":17`, 1), // a program can log anything
		strings.Replace(logLine(good), `"processID":0,`, "", 1),
	} {
		l.Line([]byte(line))
	}
	if got := l.Report(); len(got.Refusals) != 0 || got.Seen != 0 {
		t.Errorf("%+v", got)
	}
	l.Line([]byte(logLine(good)))
	if got := l.Report(); len(got.Refusals) != 1 {
		t.Errorf("control: %+v", got)
	}
}

func TestLogReport(t *testing.T) {
	l := newTestLog()
	for _, text := range []string{"Sandbox: a(1) deny(1) file-read-data /x", "3 duplicate reports for Sandbox: a(1) deny(1) file-read-data /x", "Sandbox: a(2) deny(1) file-write-data /x"} {
		l.Line([]byte(logLine(text + "\n" + testTag)))
	}
	got := l.Report()
	if len(got.Refusals) != 2 || got.Seen != 5 || got.More || got.Refusals[0].Count != 4 || got.Refusals[0].When != 0.8 || got.Refusals[1].When != 1 {
		t.Errorf("%+v", got)
	}
	for i := range maxRefusals {
		l.Line([]byte(logLine("Sandbox: a(1) deny(1) file-read-data /" + strings.Repeat("y", i+1) + "\n" + testTag)))
	}
	if got := l.Report(); !got.More || len(got.Refusals) != maxRefusals {
		t.Errorf("%d, %v", len(got.Refusals), got.More)
	}
}

func FuzzLog(f *testing.F) {
	f.Add("Sandbox: cat(1) deny(1) file-read-data /x")
	f.Fuzz(func(t *testing.T, text string) {
		l := newTestLog()
		l.Line([]byte(logLine(text + "\n" + testTag)))
		if got := l.Report(); slices.ContainsFunc(got.Refusals, func(r Refusal) bool { return r.Count < 1 || r.Call == "" }) {
			t.Errorf("%q: %+v", text, got)
		}
	})
}
