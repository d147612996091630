package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os/exec"
	"path"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/internal/enforce/answer"
)

// Log collects the refusals of one session from macOS' log. A refusal is a message of the
// kernel. Its last line is the message of the rule.
//
//	Sandbox: cat(4615) deny(1) file-read-data /private/etc/hosts
//	zsbx-4f1a0c52-...
//
// The kernel sums up repeated refusals: "4 duplicate reports for Sandbox: cat(4615) ...".
type Log struct {
	session string
	tag     string // the message of the session's rules
	message *regexp.Regexp
	stop    io.Closer // of log(1), while it runs

	refusals
}

// NewLog returns a Log for a session whose profile has Options.Log. The command chooses its
// program's name and the text after the operation, so neither can be trusted.
func NewLog(session, tag string) *Log {
	const message = `(?s)^(?:([1-9]\d{0,8}) duplicate reports? for )?` +
		`Sandbox: (.*?)\((\d{1,9})\) deny\(\d+\) (\S+) ?(.*)\n`
	return &Log{session: session, tag: tag, message: regexp.MustCompile(message + regexp.QuoteMeta(tag) + "$")}
}

// How long to wait for log(1): to begin, and for its last lines after the command has ended.
const (
	logBegins = 3 * time.Second
	logEnds   = 500 * time.Millisecond
)

// stdinEnds runs a program until the other end of standard input is closed. So the program ends
// even if zsbx is killed.
const stdinEnds = `"$@" </dev/null & exec >&-; read -r _; kill $! 2>/dev/null`

// Start starts "log stream" and waits until it has begun. Earlier refusals are missing. Program
// is the path of log(1).
func (l *Log) Start(program string) error {
	from := `processID == 0 AND eventMessage ENDSWITH "` + l.tag + `"` // no program can log as process 0, the kernel
	cmd := exec.Command("/bin/sh", "-c", stdinEnds, "sh", program, "stream", "--style", "ndjson", "--predicate", from)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the command
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	stop, failed := cmd.StdinPipe()
	var said bytes.Buffer // for instance that only administrators may read the log
	cmd.Stderr = &said
	cmd.WaitDelay = logEnds
	out, err := cmd.StdoutPipe()
	err = cmp.Or(failed, err)
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	in := bufio.NewReader(out)
	late := time.AfterFunc(logBegins, func() { stop.Close() })
	if _, err := in.ReadBytes('\n'); err != nil || !late.Stop() { // the first line is the predicate
		stop.Close()
		_ = cmd.Wait()
		return errors.New(strings.TrimSpace("log stream did not begin: " + said.String()))
	}
	l.stop = stop
	go func() {
		for line, err := in.ReadBytes('\n'); err == nil; line, err = in.ReadBytes('\n') {
			l.Line(line)
		}
		_ = cmd.Wait()
	}()
	return nil
}

// Report waits for the log's last lines about a command that has ended, stops log(1), and
// returns what was refused.
func (l *Log) Report() Report {
	if l.stop != nil {
		time.Sleep(logEnds)
		l.stop.Close()
		l.stop = nil
	}
	return l.refusals.Report()
}

// Line parses a line of "log stream --style ndjson". It ignores lines about other sessions.
func (l *Log) Line(line []byte) {
	e := struct {
		Message string `json:"eventMessage"`
		Process int    `json:"processID"`
	}{Process: -1}
	if json.Unmarshal(line, &e) != nil || e.Process != 0 {
		return
	}
	m := l.message.FindStringSubmatch(e.Message)
	if m == nil || strings.Contains(m[5], l.session) { // zsbx itself looks for the session's marks
		return
	}
	r := Refusal{Answer: answer.Answer{Verdict: answer.Refused}, Errno: "EPERM", Proved: true, Left: math.MaxInt32,
		Program: m[2], Call: m[4], Act: logged(m[4], m[5])}
	r.Count, _ = strconv.Atoi(cmp.Or(m[1], "1"))
	r.Pid, _ = strconv.Atoi(m[3])
	l.add(r, r.Count)
}

// operations maps Seatbelt's operations, or patterns of them (path.Match), to acts that a
// policy has rules for. The first match counts.
var operations = []struct {
	op  string
	act answer.Act
}{
	{"file-write-create", answer.Act{Op: answer.Open, Flags: answer.Write | answer.Creat, Missing: true}},
	{"file-write-data", answer.Act{Op: answer.Open, Flags: answer.Write}},
	{"file-write-unlink", answer.Act{Op: answer.Remove}},
	{"file-link", answer.Act{Op: answer.Link}},
	{"file-write-*", answer.Act{Op: answer.Metadata}},
	{"file-read*", answer.Act{Op: answer.Open, Flags: answer.Read}},
	{"file-clone", answer.Act{Op: answer.Open, Flags: answer.Read}},
	{"file-test-existence", answer.Act{Op: answer.Open, Flags: answer.Read}},
	{"file-map-executable", answer.Act{Op: answer.Exec}},
	{"process-exec*", answer.Act{Op: answer.Exec}},
	{"network-outbound", answer.Act{Op: answer.Connect}},
	{"network-*", answer.Act{Op: answer.Bind}},
}

// logged returns the act of an operation. It is a Call if no policy has rules for it.
func logged(op, target string) answer.Act {
	for _, known := range operations {
		if is, _ := path.Match(known.op, op); !is {
			continue
		}
		a := known.act
		port, err := strconv.ParseUint(target[strings.LastIndexByte(target, ':')+1:], 10, 16)
		switch {
		case strings.HasPrefix(target, "/"):
			a.Path = target
		case err == nil && (a.Op == answer.Connect || a.Op == answer.Bind):
			a.Port = uint16(port)
		default:
			continue
		}
		return a
	}
	return answer.Act{Op: answer.Call, Name: strings.TrimRight(op+" "+target, " ")}
}
