// Package hello reads the ClientHello with which TLS begins, as far as it says which server
// is meant. Whatever could be read in two ways is a Fault.
package hello

import "io"

// Hello is what a ClientHello says about the server.
type Hello struct {
	Name string // as it was sent; "" if there is none
	ECH  bool   // there may be another, encrypted one in it, or what looks like one (GREASE)

	early bool // data may follow before the server has answered
}

// Fault is what is wrong with a ClientHello.
type Fault string

// Error returns what is wrong, in lower case.
func (f Fault) Error() string { return string(f) }

// Limits of what is read, and numbers of TLS.
const (
	most          = 64 << 10 // bytes of all records of a ClientHello
	mostOfRecord  = 16 << 10
	handshake     = 22 // the type of a record
	clientHello   = 1  // the type of a handshake message
	headerLength  = 5
	messageLength = 4
)

// Begins reports whether bytes begin a ClientHello. It is not known if they are too few, but
// all of them could.
func Begins(b []byte) (yes, known bool) {
	for i, c := range b[:min(len(b), headerLength+1)] {
		if !fits(i, c) {
			return false, true
		}
	}
	return len(b) > headerLength, len(b) > headerLength
}

// fits reports whether a byte at a place of the first record may be one of a ClientHello.
func fits(i int, c byte) bool {
	switch i {
	case 0:
		return c == handshake
	case 1:
		return c == 3
	case 2:
		return c <= 4
	case 5:
		return c == clientHello
	}
	return true
}

// Read reads a ClientHello, whatever records it comes in, and nothing after its last record.
// It returns all bytes that it has read. The error is a Fault, or the reader's.
func Read(r io.Reader) (raw []byte, h Hello, err error) {
	var message []byte
	for {
		var record []byte
		raw, record, err = readRecord(r, raw)
		if err != nil {
			return raw, h, err
		}
		message = append(message, record...)
		if message[0] != clientHello {
			return raw, h, Fault("the handshake does not begin with a ClientHello")
		}
		if len(message) < messageLength {
			continue
		}
		length := int(message[1])<<16 | int(message[2])<<8 | int(message[3])
		if length > most {
			return raw, h, Fault("the ClientHello is too long")
		}
		if len(message)-messageLength > length {
			return raw, h, Fault("something follows the ClientHello in its record")
		}
		if len(message)-messageLength == length {
			h, err = parse(message[messageLength:])
			return raw, h, err
		}
	}
}

// readRecord appends one record to raw, and returns what is in it.
func readRecord(r io.Reader, raw []byte) (all, content []byte, err error) {
	var header [headerLength]byte
	n, err := io.ReadFull(r, header[:])
	raw = append(raw, header[:n]...)
	if err != nil {
		return raw, nil, err
	}
	length := int(header[3])<<8 | int(header[4])
	if header[0] != handshake || header[1] != 3 || header[2] > 4 {
		return raw, nil, Fault("a record is none of a handshake")
	}
	if length == 0 || length > mostOfRecord {
		return raw, nil, Fault("a record is empty or too long")
	}
	if len(raw)+length > most {
		return raw, nil, Fault("the ClientHello is too long")
	}
	start := len(raw)
	raw = append(raw, make([]byte, length)...)
	n, err = io.ReadFull(r, raw[start:])
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return raw[:start+n], raw[start : start+n], err
}
