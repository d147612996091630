package watch

import (
	"encoding/json"
	"math"
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

	refusals
}

// NewLog is for a session of a profile with Options.Log.
func NewLog(session, tag string) *Log { return &Log{session: session, tag: tag} }

// predicate is for log(1). No program can log as process 0.
func (l *Log) predicate() string {
	return `processID == 0 AND eventMessage ENDSWITH "` + l.tag + `"`
}

// Line takes a line of "log stream --style ndjson". What is none of the session's is
// passed over.
func (l *Log) Line(line []byte) {
	r, ok := l.parse(line)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen += r.Count
	l.add(r)
}

// Report is all that was said so far.
func (l *Log) Report() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.report()
}

func (l *Log) parse(line []byte) (r Refusal, ok bool) {
	var e struct {
		Message string `json:"eventMessage"`
		Process *int   `json:"processID"`
	}
	if json.Unmarshal(line, &e) != nil || e.Process == nil || *e.Process != 0 {
		return r, false
	}
	text, ok := strings.CutSuffix(e.Message, "\n"+l.tag)
	head, text, found := strings.Cut(text, "Sandbox: ")
	if !ok || !found {
		return r, false
	}
	r = Refusal{Answer: answer.Answer{Verdict: answer.Refused}, Errno: "EPERM", Proved: true, Count: 1, Left: math.MaxInt32}
	if head != "" {
		number, rest, _ := strings.Cut(head, " ")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || !strings.HasPrefix(rest, "duplicate report") {
			return r, false
		}
		r.Count = n
	}
	who, what, ok := strings.Cut(text, ") deny(")
	at := strings.LastIndexByte(who, '(')
	_, what, found = strings.Cut(what, ") ")
	if !ok || !found || at < 0 {
		return r, false
	}
	var err error
	if r.Pid, err = strconv.Atoi(who[at+1:]); err != nil {
		return r, false
	}
	var target string
	r.Program = who[:at]
	r.Call, target, _ = strings.Cut(what, " ")
	r.Act = logged(r.Call, target)
	// The marks that the session is known by are asked for by zsbx itself.
	return r, r.Call != "" && !strings.Contains(target, l.session)
}

// logged is the act of an operation. Operations that are none of those that a policy
// has rules for are calls.
func logged(op, target string) answer.Act {
	if !strings.HasPrefix(target, "/") {
		if i := strings.LastIndexByte(target, ':'); strings.HasPrefix(op, "network-") && i >= 0 {
			if port, err := strconv.ParseUint(target[i+1:], 10, 16); err == nil {
				a := answer.Act{Op: answer.Connect, Port: uint16(port)}
				if op != "network-outbound" {
					a.Op = answer.Bind
				}
				return a
			}
		}
		if op == "signal" {
			return answer.Act{Op: answer.Signal, Name: strings.TrimPrefix(target, "target:")}
		}
		return answer.Act{Op: answer.Call, Name: strings.TrimRight(op+" "+target, " ")}
	}
	for _, known := range operations() {
		if op == known.op || strings.HasSuffix(known.op, "*") && strings.HasPrefix(op, known.op[:len(known.op)-1]) {
			known.act.Path = target
			return known.act
		}
	}
	return answer.Act{Op: answer.Call, Name: op + " " + target}
}

// operation is one of Seatbelt's about a path, or all that begin so, and its act.
type operation struct {
	op  string
	act answer.Act
}

// operations are those that a policy has rules for; the first counts.
func operations() []operation {
	read := answer.Act{Op: answer.Open, Flags: answer.Read}
	return []operation{
		{"file-write-create", answer.Act{Op: answer.Open, Flags: answer.Write | answer.Creat, Missing: true}},
		{"file-write-data", answer.Act{Op: answer.Open, Flags: answer.Write}},
		{"file-write-unlink", answer.Act{Op: answer.Remove}},
		{"file-link", answer.Act{Op: answer.Link}},
		{"file-write-*", answer.Act{Op: answer.Metadata}},
		{"file-read*", read}, {"file-clone", read}, {"file-test-existence", read},
		{"file-map-executable", answer.Act{Op: answer.Exec}}, {"process-exec*", answer.Act{Op: answer.Exec}},
		{"network-outbound", answer.Act{Op: answer.Connect}},
		{"network-bind", answer.Act{Op: answer.Bind}}, {"network-inbound", answer.Act{Op: answer.Bind}},
	}
}
