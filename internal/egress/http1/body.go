package http1

import (
	"bytes"
	"io"
	"strconv"
)

// Buffered returns how many bytes are read already, beyond the last request.
func (r *Reader) Buffered() int { return r.r.Buffered() }

// Body passes the body of a request on, framed as it was sent.
func (r *Reader) Body(q *Request, w io.Writer) error {
	if !q.chunked {
		return r.copy(w, q.length)
	}
	for {
		size, err := r.chunk(w)
		if err != nil {
			return err
		}
		if size == 0 {
			return r.trailers(w)
		}
		if err := r.copy(w, size); err != nil {
			return err
		}
		end, err := r.line(&Request{})
		if err != nil {
			return err
		}
		if len(end) > 0 {
			return Fault("a chunk is longer than it says")
		}
		if _, err := io.WriteString(w, "\r\n"); err != nil {
			return err
		}
	}
}

// copy passes bytes on.
func (r *Reader) copy(w io.Writer, n int64) error {
	if n == 0 {
		return nil
	}
	_, err := io.CopyN(w, r.r, n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// chunk reads the line before a chunk: its size, and nothing else.
func (r *Reader) chunk(w io.Writer) (int64, error) {
	line, err := r.line(&Request{})
	if err != nil {
		return 0, err
	}
	if bytes.ContainsAny(line, "; \t") {
		return 0, Fault("a chunk has an extension")
	}
	size, err := strconv.ParseUint(string(line), 16, 60)
	if err != nil || line[0] == '+' {
		return 0, Fault("the size of a chunk is no number")
	}
	_, err = w.Write(append(line, "\r\n"...))
	return int64(size), err
}

// trailers passes on the headers after the last chunk. None may say anything about the request.
func (r *Reader) trailers(w io.Writer) error {
	var all Request
	for {
		line, err := r.line(&all)
		if err != nil {
			return err
		}
		if len(line) > 0 {
			if err := all.header(line); err != nil {
				return err
			}
		}
		if all.hosts+all.lengths+all.codings > 0 || all.upgrade != "" {
			return Fault("a trailer belongs in the head")
		}
		done := len(line) == 0
		if _, err := w.Write(append(line, "\r\n"...)); err != nil || done {
			return err
		}
	}
}
