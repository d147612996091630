package names

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/zsbx/zsbx/internal/egress/rule"
)

// Sizes of messages.
const (
	headerSize = 12
	mostPlain  = 512   // bytes of an answer by UDP without EDNS
	mostEDNS   = 1232  // with it
	mostTCP    = 65535 // by TCP
	mostAsking = 4096  // of a question
	mostName   = 253
)

// query is a question that was read.
type query struct {
	header   dnsmessage.Header
	question dnsmessage.Question
	edns     bool
	limit    int // bytes of the answer
}

// Answer answers a message that came by UDP. It is nil for what gets no answer.
func (r *Resolver) Answer(ctx context.Context, message []byte) []byte {
	return r.answer(ctx, message, mostPlain)
}

// answer answers a message, in at most some bytes; more if it says that it takes more.
func (r *Resolver) answer(ctx context.Context, message []byte, limit int) []byte {
	if len(message) < headerSize || len(message) > mostAsking {
		return nil
	}
	q := query{limit: limit}
	var p dnsmessage.Parser
	h, err := p.Start(message)
	if err != nil || h.Response {
		return nil
	}
	q.header = dnsmessage.Header{ID: h.ID, Response: true, OpCode: h.OpCode, RecursionDesired: h.RecursionDesired}
	if h.OpCode != 0 {
		return q.fail(dnsmessage.RCodeNotImplemented)
	}
	questions := binary.BigEndian.Uint16(message[4:])
	if questions != 1 || q.read(&p) != nil {
		return q.fail(dnsmessage.RCodeFormatError)
	}
	q.header.RecursionAvailable = true
	return q.reply(r.resources(ctx, &q))
}

// read reads the question and what may come after it.
func (q *query) read(p *dnsmessage.Parser) (err error) {
	q.question, err = p.Question()
	if err != nil {
		return err
	}
	_, err = p.Question()
	if err != dnsmessage.ErrSectionDone {
		return errors.New("two questions")
	}
	if len(q.name()) > mostName {
		return errors.New("a long name")
	}
	if err := p.SkipAllAnswers(); err != nil {
		return err
	}
	if err := p.SkipAllAuthorities(); err != nil {
		return err
	}
	for {
		h, err := p.AdditionalHeader()
		if err == dnsmessage.ErrSectionDone {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Type == dnsmessage.TypeOPT {
			q.edns = true
			q.limit = max(q.limit, min(int(h.Class), mostEDNS))
		}
		if err := p.SkipAdditional(); err != nil {
			return err
		}
	}
}

// name returns the name in lower case, without the dot at its end.
func (q *query) name() string { return rule.Normal(q.question.Name.String()) }

// resources returns what a name has of the type that was asked for.
func (r *Resolver) resources(ctx context.Context, q *query) ([]dnsmessage.ResourceBody, dnsmessage.RCode) {
	if q.question.Class != dnsmessage.ClassINET {
		return nil, dnsmessage.RCodeRefused
	}
	name := q.name()
	if q.question.Type == dnsmessage.TypePTR {
		return r.pointer(name)
	}
	wanted := q.question.Type == dnsmessage.TypeA || q.question.Type == dnsmessage.TypeAAAA
	allowed := r.Rules.Decide(rule.Ask{Names: []string{name}})
	if !wanted && allowed.Allowed() {
		return nil, dnsmessage.RCodeSuccess // nothing but addresses, and nobody is asked
	}
	found := r.Find(ctx, name)
	if errors.Is(found.Err, ErrNotFound) {
		return nil, dnsmessage.RCodeNameError
	}
	if found.Err != nil {
		return nil, dnsmessage.RCodeServerFailure
	}
	var out []dnsmessage.ResourceBody
	for _, a := range found.Addrs {
		if a.Is4() && q.question.Type == dnsmessage.TypeA {
			out = append(out, &dnsmessage.AResource{A: a.As4()})
		}
		if a.Is6() && q.question.Type == dnsmessage.TypeAAAA {
			out = append(out, &dnsmessage.AAAAResource{AAAA: a.As16()})
		}
	}
	return out, dnsmessage.RCodeSuccess
}

// pointer returns the name that an address was handed out for.
func (r *Resolver) pointer(name string) ([]dnsmessage.ResourceBody, dnsmessage.RCode) {
	a, ok := reversed(name)
	if !ok {
		return nil, dnsmessage.RCodeNameError
	}
	names := r.Ask(a, 0).Names
	if len(names) == 0 {
		return nil, dnsmessage.RCodeNameError
	}
	to, err := dnsmessage.NewName(names[0] + ".")
	if err != nil {
		return nil, dnsmessage.RCodeNameError
	}
	return []dnsmessage.ResourceBody{&dnsmessage.PTRResource{PTR: to}}, dnsmessage.RCodeSuccess
}

// reversed reads an address from the name under which its name is asked for.
func reversed(name string) (netip.Addr, bool) {
	text, is4 := strings.CutSuffix(name, ".in-addr.arpa")
	base := 10
	size := 4
	if !is4 {
		var is6 bool
		text, is6 = strings.CutSuffix(name, ".ip6.arpa")
		if !is6 {
			return netip.Addr{}, false
		}
		base = 16
		size = 32
	}
	labels := strings.Split(text, ".")
	if len(labels) != size {
		return netip.Addr{}, false
	}
	var b [16]byte
	for i, l := range labels {
		n, err := strconv.ParseUint(l, base, 8)
		if err != nil || !is4 && len(l) != 1 {
			return netip.Addr{}, false
		}
		at := size - 1 - i
		if is4 {
			b[at] = byte(n)
		} else {
			b[at/2] |= byte(n) << (4 * (1 - at%2))
		}
	}
	if is4 {
		return netip.AddrFrom4([4]byte(b[:4])), true
	}
	return netip.AddrFrom16(b), true
}

// fail writes an answer without the question.
func (q *query) fail(code dnsmessage.RCode) []byte {
	q.header.RCode = code
	m := dnsmessage.Message{Header: q.header}
	out, err := m.Pack()
	if err != nil {
		return nil
	}
	return out
}

// reply writes an answer. The question is echoed as it was asked, in its case.
func (q *query) reply(all []dnsmessage.ResourceBody, code dnsmessage.RCode) []byte {
	const ttl = 60
	q.header.RCode = code
	m := dnsmessage.Message{Header: q.header, Questions: []dnsmessage.Question{q.question}}
	for _, body := range all {
		h := dnsmessage.ResourceHeader{Name: q.question.Name, Class: dnsmessage.ClassINET, TTL: ttl}
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: body})
	}
	if q.edns {
		var h dnsmessage.ResourceHeader
		if h.SetEDNS0(mostEDNS, code, false) == nil {
			m.Additionals = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.OPTResource{}}}
		}
	}
	out, err := m.Pack()
	if err == nil && len(out) > q.limit {
		m.Answers = nil
		m.Truncated = true
		out, err = m.Pack()
	}
	if err != nil {
		return nil
	}
	return out
}

// messageTime is how long a client may take for one message by TCP.
const messageTime = 10 * time.Second

// Serve answers the messages of a connection by TCP, and closes it.
func (r *Resolver) Serve(ctx context.Context, c net.Conn) {
	defer c.Close()
	for ctx.Err() == nil {
		if c.SetDeadline(time.Now().Add(messageTime)) != nil {
			return
		}
		var length [2]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return
		}
		size := int(binary.BigEndian.Uint16(length[:]))
		if size < headerSize || size > mostAsking {
			return
		}
		message := make([]byte, size)
		if _, err := io.ReadFull(c, message); err != nil {
			return
		}
		out := r.answer(ctx, message, mostTCP)
		if out == nil {
			return
		}
		framed := binary.BigEndian.AppendUint16(nil, uint16(len(out)))
		if _, err := c.Write(append(framed, out...)); err != nil {
			return
		}
	}
}
