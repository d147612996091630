package hello

import (
	"bytes"
	"io"
)

// Types of records, and of the messages that a client may send in plain text.
const (
	applicationData = 23
	earlyData       = 42            // the extension
	mostEarly       = 64 << 10      // bytes of it that are looked through
	mostEncrypted   = 18 << 10      // bytes of a record
	leastHello      = 80            // bytes of a ClientHello that names a server and has a key
	longestHello    = 128<<10 + 512 // bytes that any server reads of one
)

// After looks through what a client sends after its ClientHello. A server may ask for a second one,
// which comes before anything that is encrypted, but for early data.
type After struct {
	early int // bytes of early data that may still come
}

// After returns what looks through the rest.
func (h *Hello) After() *After {
	if h.early {
		return &After{mostEarly}
	}
	return &After{}
}

// Next reads one record, or a whole second ClientHello, and returns its bytes. The second is nil if
// it is none. over says that none can follow.
func (a *After) Next(r io.Reader) (raw []byte, second *Hello, over bool, err error) {
	raw = make([]byte, headerLength)
	n, err := io.ReadFull(r, raw)
	if err != nil {
		return raw[:n], nil, true, err
	}
	length := int(raw[3])<<8 | int(raw[4])
	if raw[1] != 3 || length > mostEncrypted {
		return raw, nil, true, nil // no TLS: no server reads it as a ClientHello
	}
	raw = append(raw, make([]byte, length)...)
	n, err = io.ReadFull(r, raw[headerLength:])
	if err != nil {
		return raw[:headerLength+n], nil, true, io.ErrUnexpectedEOF
	}
	if raw[0] == applicationData {
		a.early -= length
		return raw, nil, a.early <= 0, nil
	}
	if raw[0] != handshake || length == 0 {
		return raw, nil, false, nil // a server may skip it, such as an alert
	}
	if !maybeHello(raw[headerLength:]) {
		return raw, nil, true, nil
	}
	raw, h, err := Read(io.MultiReader(bytes.NewReader(raw), r))
	return raw, &h, false, err
}

// maybeHello reports whether a record of a handshake begins a ClientHello. One that is encrypted looks
// so once in thirty thousand times, and is never as short as a message's beginning.
func maybeHello(b []byte) bool {
	if len(b) == 0 || b[0] != clientHello {
		return false
	}
	if len(b) < messageLength {
		return true
	}
	length := int(b[1])<<16 | int(b[2])<<8 | int(b[3])
	return length >= leastHello && length <= longestHello
}
