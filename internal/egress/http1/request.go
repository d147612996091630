// Package http1 reads the requests on a connection of HTTP/1, strictly, and passes them on.
// Each request names its host. What two readers could read in two ways is a Fault: a proxy,
// a server and this package must find the same requests in the same bytes.
package http1

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"strings"
)

// Fault is what is wrong with a request.
type Fault string

// Error returns what is wrong, in lower case.
func (f Fault) Error() string { return string(f) }

// mostOfHead is how many bytes the head of a request may have, and the trailers of one.
const mostOfHead = 64 << 10

// mostLines is how many headers a request may have, and trailers. Short ones take ten times their length.
const mostLines = 256

// Request is the head of a request, and how its body is framed.
type Request struct {
	Method  string
	Target  string // as it was sent
	Path    string // the target without scheme and host
	Host    string // of the Host header; an absolute target has the same
	Version string // "HTTP/1.1" or "HTTP/1.0"

	lines    [][]byte // of the headers, without their ends
	length   int64    // of the body
	chunked  bool
	hosts    int
	lengths  int
	codings  int
	absolute string // the host of an absolute target
	upgrade  string
	size     int
}

// Reader reads the requests of one connection.
type Reader struct {
	r *bufio.Reader
}

// NewReader reads from a connection, through a small buffer: many connections are idle.
func NewReader(r io.Reader) *Reader {
	return &Reader{bufio.NewReaderSize(r, 1<<10)}
}

// Wait waits for the first byte of a request. It is io.EOF if the client has ended.
func (r *Reader) Wait() error {
	_, err := r.r.Peek(1)
	return err
}

// Begins reports whether bytes begin a request. It is not known if they are too few, but all of them could. Where
// something else may come, only methods that are in use count.
func Begins(b []byte, other bool) (yes, known bool) {
	method, rest, space := bytes.Cut(b, []byte(" "))
	if !space {
		return false, !mayBegin(string(method), other)
	}
	if !isMethod(string(method), other) {
		return false, true
	}
	line, _, end := bytes.Cut(rest, []byte("\n"))
	if bytes.Contains(line, []byte(" HTTP/")) {
		return true, true
	}
	return false, end || len(b) > 8<<10
}

// methods are those that are in use.
var methods = [...]string{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "PRI",
	"PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK", "REPORT", "SEARCH", "QUERY"}

const longestMethod = 64 // bytes

// mayBegin reports whether a method may begin with something.
func mayBegin(s string, other bool) bool {
	if !other {
		return s == "" || len(s) <= longestMethod && isToken(s)
	}
	begins := func(method string) bool { return strings.HasPrefix(method, s) }
	return slices.ContainsFunc(methods[:], begins)
}

func isMethod(s string, other bool) bool {
	if !other {
		return len(s) <= longestMethod && isToken(s)
	}
	return slices.Contains(methods[:], s)
}

// Next reads the head of the next request. It is io.EOF if the client has ended between two.
func (r *Reader) Next() (*Request, error) {
	q := &Request{}
	first, err := r.line(q)
	if err != nil {
		if err == io.ErrUnexpectedEOF && q.size == 0 {
			err = io.EOF
		}
		return nil, err
	}
	if err := q.first(string(first)); err != nil {
		return nil, err
	}
	for {
		line, err := r.line(q)
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			return q, q.complete()
		}
		if err := q.header(line); err != nil {
			return nil, err
		}
	}
}

// line reads one line, and returns it without its end.
func (r *Reader) line(q *Request) ([]byte, error) {
	var line []byte
	for {
		part, err := r.r.ReadSlice('\n')
		q.size += len(part)
		line = append(line, part...)
		if q.size > mostOfHead {
			return nil, Fault("the head is too long")
		}
		if err == nil {
			break
		}
		if err == io.EOF {
			return nil, io.ErrUnexpectedEOF
		}
		if err != bufio.ErrBufferFull {
			return nil, err
		}
	}
	text, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok {
		return nil, Fault("a line ends without CR")
	}
	for _, c := range text {
		if c < ' ' && c != '\t' || c == 0x7f {
			return nil, Fault("a line has a control character")
		}
	}
	return text, nil
}

// first reads the first line of a request.
func (q *Request) first(line string) error {
	parts := strings.Split(line, " ")
	if len(parts) != 3 || !isToken(parts[0]) || parts[1] == "" {
		return Fault("the first line is none of a request")
	}
	q.Method = parts[0]
	q.Target = parts[1]
	q.Version = parts[2]
	if q.Version == "HTTP/2.0" {
		return Fault("it is HTTP/2")
	}
	if q.Version != "HTTP/1.1" && q.Version != "HTTP/1.0" {
		return Fault("it is not HTTP/1")
	}
	for _, c := range []byte(q.Target) {
		if c <= ' ' || c > '~' {
			return Fault("the target is not ASCII")
		}
	}
	return q.target()
}

// target reads what is asked for.
func (q *Request) target() error {
	q.Path = q.Target
	if q.Method == "CONNECT" {
		return nil
	}
	if q.Target[0] == '/' {
		return nil
	}
	if q.Target == "*" && q.Method == "OPTIONS" {
		return nil
	}
	const scheme = "http://"
	if len(q.Target) <= len(scheme) || !strings.EqualFold(q.Target[:len(scheme)], scheme) {
		return Fault("the target is no path")
	}
	rest := q.Target[len(scheme):]
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	q.absolute = rest[:end]
	q.Path = rest[end:]
	if q.absolute == "" || strings.Contains(q.absolute, "@") {
		return Fault("the target has no plain host")
	}
	if q.Path == "" || q.Path[0] != '/' {
		q.Path = "/" + q.Path
	}
	return nil
}

// complete checks the head as a whole.
func (q *Request) complete() error {
	tunnel := q.Method == "CONNECT" && q.hosts == 0 // its target says it; old clients say no more
	switch {
	case q.hosts != 1 && !tunnel:
		return Fault("there is not exactly one Host")
	case q.lengths > 1:
		return Fault("there are two Content-Length")
	case q.codings > 0 && (q.lengths > 0 || q.Version == "HTTP/1.0"):
		return Fault("the length of the body is said in two ways")
	}
	if q.absolute != "" && !strings.EqualFold(q.absolute, q.Host) {
		return Fault("the target and the Host differ")
	}
	return q.upgrades()
}

// upgrades removes what offers HTTP/2, which a server may ignore, and refuses other upgrades.
func (q *Request) upgrades() error {
	if q.upgrade == "" {
		return nil
	}
	if !strings.EqualFold(q.upgrade, "h2c") {
		return Fault("it is an upgrade to another protocol")
	}
	var kept [][]byte
	for _, line := range q.lines {
		name, value := split(line)
		switch name {
		case "upgrade", "http2-settings":
			continue
		case "connection":
			line = withoutUpgrade(value)
		}
		if line != nil {
			kept = append(kept, line)
		}
	}
	q.lines = kept
	return nil
}

// withoutUpgrade writes a Connection header without what belongs to an upgrade; nil if nothing is left.
func withoutUpgrade(value string) []byte {
	var kept []string
	for word := range strings.SplitSeq(value, ",") {
		word = strings.TrimSpace(word)
		if !strings.EqualFold(word, "upgrade") && !strings.EqualFold(word, "http2-settings") && word != "" {
			kept = append(kept, word)
		}
	}
	if kept == nil {
		return nil
	}
	return []byte("Connection: " + strings.Join(kept, ", "))
}
