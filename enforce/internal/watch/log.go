package watch

import (
	"cmp"
	"encoding/json"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/zsbx/zsbx/enforce/internal/answer"
)

// Log is what macOS's log says of one session: a refusal is a message of the kernel,
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

	refusals
}

// NewLog is for a session of a profile with Options.Log.
func NewLog(session, tag string) *Log {
	return &Log{session: session, tag: tag, message: regexp.MustCompile(message)}
}

// Line takes a line of "log stream --style ndjson". What is none of the session's is
// passed over.
func (l *Log) Line(line []byte) {
	if r, ok := l.parse(line); ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.seen += r.Count
		l.add(r)
	}
}

// message is a refusal without the message of the rule. What stands for the program and
// behind the operation is the command's own choice.
const message = `(?s)^(?:([1-9]\d{0,8}) duplicate reports? for )?Sandbox: (.*?)\((\d{1,9})\) deny\(\d+\) (\S+) ?(.*)$`

func (l *Log) parse(line []byte) (r Refusal, ok bool) {
	var e struct {
		Message string `json:"eventMessage"`
		Process *int   `json:"processID"`
	}
	if json.Unmarshal(line, &e) != nil || e.Process == nil || *e.Process != 0 {
		return r, false
	}
	text, ok := strings.CutSuffix(e.Message, "\n"+l.tag)
	m := l.message.FindStringSubmatch(text)
	if !ok || m == nil || strings.Contains(m[5], l.session) { // zsbx itself asks for the marks of the session
		return r, false
	}
	r = Refusal{Answer: answer.Answer{Verdict: answer.Refused}, Errno: "EPERM", Proved: true, Left: math.MaxInt32,
		Program: m[2], Call: m[4], Act: logged(m[4], m[5])}
	r.Count, _ = strconv.Atoi(cmp.Or(m[1], "1"))
	r.Pid, _ = strconv.Atoi(m[3])
	return r, true
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
	{"signal", answer.Act{Op: answer.Signal}},
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
		case a.Op == answer.Signal:
			a.Name = strings.TrimPrefix(target, "target:")
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
