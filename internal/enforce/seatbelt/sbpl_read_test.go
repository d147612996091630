package seatbelt_test

import (
	"fmt"
	"strconv"
	"strings"
)

// stringLimit is the longest literal that the reader accepts, in bytes.
const stringLimit = 255

// A node is a read form: a list, a string, a symbol or a number.
type node struct {
	kind kind
	text string // string, symbol
	num  int    // number
	list []node
	line int
}

type kind uint8

const (
	listNode kind = iota
	stringNode
	symbolNode
	numberNode
)

// reader reads forms.
type reader struct {
	src  string
	pos  int
	line int
}

// Read reads all forms of a text and returns their number. It executes nothing.
func Read(src string) (int, error) {
	ns, err := readAll(src)
	return len(ns), err
}

func readAll(src string) ([]node, error) {
	r := &reader{src: src, line: 1}
	var ns []node
	for {
		r.skip()
		if r.pos == len(r.src) {
			return ns, nil
		}
		n, err := r.form()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", r.line, err)
		}
		ns = append(ns, n)
	}
}

// skip skips blanks and comments. A comment ends only at a newline.
func (r *reader) skip() {
	for r.pos < len(r.src) {
		switch c := r.src[r.pos]; c {
		case '\n':
			r.line++
			r.pos++
		case ' ', '\t', '\r', '\f', '\v':
			r.pos++
		case ';':
			if i := strings.IndexByte(r.src[r.pos:], '\n'); i >= 0 {
				r.pos += i
			} else {
				r.pos = len(r.src)
			}
		default:
			return
		}
	}
}

func (r *reader) form() (node, error) {
	r.skip()
	if r.pos == len(r.src) {
		return node{}, fmt.Errorf("the text ends inside a form")
	}
	line := r.line
	switch c := r.src[r.pos]; c {
	case '(':
		r.pos++
		return r.list(line)
	case ')':
		return node{}, fmt.Errorf("a closing parenthesis too many")
	case '"':
		r.pos++
		s, err := r.str()
		return node{kind: stringNode, text: s, line: line}, err
	case '\'':
		r.pos++
		n, err := r.form()
		return node{kind: listNode, list: []node{{kind: symbolNode, text: "quote", line: line}, n}, line: line}, err
	case '#', '`', ',':
		return node{}, fmt.Errorf("%q is not in the subset", c)
	}
	return r.atom(line)
}

func (r *reader) list(line int) (node, error) {
	n := node{kind: listNode, line: line}
	for {
		r.skip()
		if r.pos < len(r.src) && r.src[r.pos] == ')' {
			r.pos++
			return n, nil
		}
		e, err := r.form()
		if err != nil {
			return n, err
		}
		n.list = append(n.list, e)
	}
}

// str reads a literal behind its opening quote, with the escapes of
// TinyScheme: \n \t \r and \xHH mean what they do in C, any other escaped
// character means itself. So \u202e is the text "u202e".
func (r *reader) str() (string, error) {
	var b strings.Builder
	for r.pos < len(r.src) {
		c := r.src[r.pos]
		r.pos++
		switch c {
		case '"':
			if b.Len() > stringLimit {
				return "", fmt.Errorf("error reading string: %d bytes", b.Len())
			}
			return b.String(), nil
		case '\n':
			r.line++
			b.WriteByte(c)
		case '\\':
			if r.pos == len(r.src) {
				break
			}
			e, err := r.escape()
			if err != nil {
				return "", err
			}
			b.WriteByte(e)
		default:
			b.WriteByte(c)
		}
	}
	return "", fmt.Errorf("the text ends inside a string")
}

func (r *reader) escape() (byte, error) {
	c := r.src[r.pos]
	r.pos++
	switch c {
	case 'n':
		return '\n', nil
	case 't':
		return '\t', nil
	case 'r':
		return '\r', nil
	case 'x', 'X':
		if r.pos+2 > len(r.src) {
			return 0, fmt.Errorf("the text ends inside a string")
		}
		v, err := strconv.ParseUint(r.src[r.pos:r.pos+2], 16, 8)
		r.pos += 2
		return byte(v), err
	}
	return c, nil
}

func (r *reader) atom(line int) (node, error) {
	end := r.pos
	for end < len(r.src) && !strings.ContainsRune(" \t\r\n\f\v();\"'", rune(r.src[end])) {
		end++
	}
	s := r.src[r.pos:end]
	r.pos = end
	if v, err := strconv.Atoi(s); err == nil {
		return node{kind: numberNode, num: v, line: line}, nil
	}
	return node{kind: symbolNode, text: strings.ToLower(s), line: line}, nil
}
