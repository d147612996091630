package hello

// The extensions that are looked at.
const (
	serverName = 0
	ech        = 0xfe0d
	esni       = 0xffce // what ech was called before
)

// fields reads the fields of a message from its beginning. Once one is missing all are empty,
// and short is true.
type fields struct {
	rest  []byte
	short bool
}

func (f *fields) bytes(n int) []byte {
	if n > len(f.rest) {
		f.short = true
		f.rest = nil
		return nil
	}
	out := f.rest[:n]
	f.rest = f.rest[n:]
	return out
}

// number reads a number of one or two bytes.
func (f *fields) number(size int) int {
	n := 0
	for _, b := range f.bytes(size) {
		n = n<<8 | int(b)
	}
	return n
}

// list reads what has its length, of one or two bytes, before it.
func (f *fields) list(size int) []byte {
	return f.bytes(f.number(size))
}

// parse reads the body of a ClientHello.
func parse(body []byte) (h Hello, err error) {
	const versionAndRandom = 2 + 32
	f := fields{rest: body}
	f.bytes(versionAndRandom)
	session := f.list(1)
	ciphers := f.list(2)
	compression := f.list(1)
	if f.short || len(session) > 32 || len(ciphers)%2 != 0 || len(ciphers) == 0 || len(compression) == 0 {
		return h, Fault("the ClientHello is malformed")
	}
	if len(f.rest) == 0 {
		return h, nil // from before there were extensions
	}
	extensions := fields{rest: f.list(2)}
	if f.short || len(f.rest) > 0 {
		return h, Fault("the ClientHello has not the length it says")
	}
	err = h.extensions(&extensions)
	return h, err
}

// extensions reads the extensions, each of which may come once.
func (h *Hello) extensions(f *fields) error {
	seen := map[int]bool{}
	for len(f.rest) > 0 {
		kind := f.number(2)
		content := f.list(2)
		if f.short {
			return Fault("an extension of the ClientHello is cut off")
		}
		if seen[kind] {
			return Fault("the ClientHello has an extension twice")
		}
		seen[kind] = true
		switch kind {
		case serverName:
			if err := h.server(content); err != nil {
				return err
			}
		case ech, esni:
			h.ECH = true
		case earlyData:
			h.early = true
		}
	}
	return nil
}

// server reads the list of server names, which has exactly one, that of a host.
func (h *Hello) server(content []byte) error {
	list := fields{rest: content}
	names := fields{rest: list.list(2)}
	kind := names.number(1)
	name := names.list(2)
	if list.short || names.short || len(list.rest) > 0 {
		return Fault("the server name is malformed")
	}
	if kind != 0 || len(names.rest) > 0 {
		return Fault("there is not exactly one server name")
	}
	if len(name) == 0 {
		return Fault("the server name is empty")
	}
	h.Name = string(name)
	return nil
}
