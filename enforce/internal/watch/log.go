package watch

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

	"github.com/zsbx/zsbx/enforce/internal/answer"
)

// Log is what macOS' log says of one session: a refusal is a message of the kernel,
// on whose last line stands the message of the rule.
//
//	Sandbox: cat(4615) deny(1) file-read-data /private/etc/hosts
//	zsbx-4f1a0c52-...
//
// The same refusal again is summed up: "4 duplicate reports for Sandbox: cat(4615) ...".
type Log struct {
	session string
	tag     string // the message of its rules
	message *regexp.Regexp
	stop    io.Closer // of log(1), while it runs

	refusals
}

// NewLog is for a session of a profile with Options.Log. What stands for the program and
// behind the operation is the command's own choice.
func NewLog(session, tag string) *Log {
	const message = `(?s)^(?:([1-9]\d{0,8}) duplicate reports? for )?Sandbox: (.*?)\((\d{1,9})\) deny\(\d+\) (\S+) ?(.*)\n`
	return &Log{session: session, tag: tag, message: regexp.MustCompile(message + regexp.QuoteMeta(tag) + "$")}
}

// Bounds of waiting for log(1): to begin, and for its last lines once the command has
// ended.
const (
	logBegins = 3 * time.Second
	logEnds   = 500 * time.Millisecond
)

// stdinEnds runs a program until nobody holds the other end of standard input any more:
// also one that was killed leaves nothing behind.
const stdinEnds = `"$@" </dev/null & exec >&-; read -r _; kill $! 2>/dev/null`

// Start starts "log stream", and waits until it has begun; what is refused before that is
// not in it. Program is log(1).
func (l *Log) Start(program string) error {
	from := `processID == 0 AND eventMessage ENDSWITH "` + l.tag + `"` // no program can log as process 0
	cmd := exec.Command("/bin/sh", "-c", stdinEnds, "sh", program, "stream", "--style", "ndjson", "--predicate", from)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is the command's
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	stop, failed := cmd.StdinPipe()
	var said bytes.Buffer // for instance that only administrators may look
	cmd.Stderr, cmd.WaitDelay = &said, logEnds
	out, err := cmd.StdoutPipe()
	if err = cmp.Or(failed, err); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	in, late := bufio.NewReader(out), time.AfterFunc(logBegins, func() { stop.Close() })
	if _, err := in.ReadBytes('\n'); err != nil || !late.Stop() { // it first says what it filters by
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

// Report waits for what the log has still to say of a command that has ended, ends it,
// and tells what was refused.
func (l *Log) Report() Report {
	if l.stop != nil {
		time.Sleep(logEnds)
		l.stop.Close()
		l.stop = nil
	}
	return l.refusals.Report()
}

// Line takes a line of "log stream --style ndjson". What is none of the session's is
// passed over.
func (l *Log) Line(line []byte) {
	e := struct {
		Message string `json:"eventMessage"`
		Process int    `json:"processID"`
	}{Process: -1}
	if json.Unmarshal(line, &e) != nil || e.Process != 0 {
		return
	}
	m := l.message.FindStringSubmatch(e.Message)
	if m == nil || strings.Contains(m[5], l.session) { // zsbx itself asks for the marks of the session
		return
	}
	r := Refusal{Answer: answer.Answer{Verdict: answer.Refused}, Errno: "EPERM", Proved: true, Left: math.MaxInt32,
		Program: m[2], Call: m[4], Act: logged(m[4], m[5])}
	r.Count, _ = strconv.Atoi(cmp.Or(m[1], "1"))
	r.Pid, _ = strconv.Atoi(m[3])
	l.add(r, r.Count)
}

// operations are those of Seatbelt that a policy has rules for, or all that match
// (path.Match), and their acts; the first counts.
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

// logged is the act of an operation. What no policy has rules for is a call.
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
