package internet

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// answer returns the answer to a DNS message, or nil.
func (s *servers) answer(question []byte, at string) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(question)
	if err != nil {
		s.log("dns broken %.60q at %s", question, at)
		return nil
	}
	all, err := p.AllQuestions()
	if err != nil || len(all) == 0 {
		s.log("dns broken %.60q at %s", question, at)
		return nil
	}
	m := dnsmessage.Message{Questions: all}
	m.Header = dnsmessage.Header{ID: h.ID, Response: true, RecursionAvailable: true}
	for _, q := range all {
		name := strings.TrimSuffix(q.Name.String(), ".")
		s.log("dns %s %s at %s", name, strings.TrimPrefix(q.Type.String(), "Type"), at)
		addrs := find(q.Name.String(), q.Type == dnsmessage.TypeA)
		if addrs == nil || strings.HasSuffix(name, ".behind.example") {
			addrs = nil
			m.RCode = dnsmessage.RCodeNameError
		}
		for _, body := range bodies(q.Type, addrs) {
			head := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1}
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: body})
		}
	}
	b, err := m.Pack()
	if err != nil {
		return nil
	}
	return b
}

// bodies returns what is answered: addresses of the type, and a text for all other types, so that
// a question for one would carry data.
func bodies(kind dnsmessage.Type, addrs []netip.Addr) []dnsmessage.ResourceBody {
	var out []dnsmessage.ResourceBody
	for _, a := range addrs {
		switch {
		case kind != dnsmessage.TypeA && kind != dnsmessage.TypeAAAA:
			return []dnsmessage.ResourceBody{&dnsmessage.TXTResource{TXT: []string{"tunnel"}}}
		case kind == dnsmessage.TypeA && a.Is4():
			out = append(out, &dnsmessage.AResource{A: a.As4()})
		case kind == dnsmessage.TypeAAAA && a.Is6():
			out = append(out, &dnsmessage.AAAAResource{AAAA: a.As16()})
		}
	}
	return out
}

// serveDNS answers datagrams to port 53 of one address.
func (s *servers) serveDNS(c net.PacketConn) {
	at := host(c.LocalAddr())
	for b := make([]byte, 65536); ; {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		if out := s.answer(b[:n], at); out != nil {
			_, _ = c.WriteTo(out, from)
		}
	}
}

// serveDNSTCP answers messages on a connection to port 53.
func (s *servers) serveDNSTCP(c net.Conn) {
	for {
		var length [2]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return
		}
		b := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		out := s.answer(b, host(c.LocalAddr())+" tcp")
		if out == nil {
			return
		}
		_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...))
	}
}
