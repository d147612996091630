package http1

import (
	"bytes"
	"strconv"
	"strings"
)

// isToken reports whether a text is a method or the name of a header.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && !(c >= '0' && c <= '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// split returns the name of a header in lower case, and its value.
func split(line []byte) (name, value string) {
	n, v, _ := bytes.Cut(line, []byte(":"))
	return strings.ToLower(string(n)), strings.Trim(string(v), " \t")
}

// header reads one line of the head.
func (q *Request) header(line []byte) error {
	if line[0] == ' ' || line[0] == '\t' {
		return Fault("a header is folded")
	}
	text, _, colon := bytes.Cut(line, []byte(":"))
	if !colon || !isToken(string(text)) {
		return Fault("a line is no header")
	}
	if len(q.lines) == mostLines {
		return Fault("there are too many headers")
	}
	name, value := split(line)
	q.lines = append(q.lines, line)
	switch name {
	case "host":
		q.hosts++
		q.Host = value
	case "content-length":
		q.lengths++
		return q.bodyLength(value)
	case "transfer-encoding":
		q.codings++
		q.chunked = true
		const chunked = "chunked"
		if q.codings > 1 || len(value) != len(chunked) || !strings.EqualFold(value, chunked) { // ASCII only
			return Fault("the Transfer-Encoding is not chunked alone")
		}
	case "upgrade":
		q.upgrade += value
	case "content_length", "transfer_encoding":
		return Fault("a header has an underscore that some servers take for a hyphen")
	}
	return nil
}

// bodyLength reads a Content-Length: digits only.
func (q *Request) bodyLength(value string) error {
	n, err := strconv.ParseUint(value, 10, 62)
	if err != nil || value[0] == '+' {
		return Fault("the Content-Length is no number")
	}
	q.length = int64(n)
	return nil
}

// Header returns the value of the first header with a name in lower case, or "".
func (q *Request) Header(name string) string {
	for _, line := range q.lines {
		n, value := split(line)
		if n == name {
			return value
		}
	}
	return ""
}

// Absolute reports whether the target has a host, as it has for a proxy.
func (q *Request) Absolute() bool { return q.absolute != "" }

// HasBody reports whether a body follows.
func (q *Request) HasBody() bool { return q.chunked || q.length > 0 }

// Drop removes the headers with a name in lower case.
func (q *Request) Drop(name string) {
	var kept [][]byte
	for _, line := range q.lines {
		n, _ := split(line)
		if n != name {
			kept = append(kept, line)
		}
	}
	q.lines = kept
}

// Add adds a header.
func (q *Request) Add(name, value string) {
	q.lines = append(q.lines, []byte(name+": "+value))
}

// Bytes returns the head with another target.
func (q *Request) Bytes(target string) []byte {
	out := []byte(q.Method + " " + target + " " + q.Version + "\r\n")
	for _, line := range q.lines {
		out = append(out, line...)
		out = append(out, "\r\n"...)
	}
	return append(out, "\r\n"...)
}
