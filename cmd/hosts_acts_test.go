package cmd

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/binary"
	"slices"

	"crypto/tls"
	"fmt"
	"golang.org/x/net/dns/dnsmessage"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// hostsAct is the first argument with which the test binary does one act on the network and ends.
const hostsAct = "hosts-act"

// doHostsAct does an act and returns the exit status.
func doHostsAct(name string, args []string) int {
	do, is := hostsActs[name]
	if !is {
		fmt.Fprintln(os.Stderr, "no such act:", name)
		return 98
	}
	if err := do(args); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// hostsActs are the acts. Each prints what it got, or returns an error.
var hostsActs = map[string]func([]string) error{
	"get":    actGet,
	"dial":   actDial,
	"peer":   actPeer,
	"hello":  func(a []string) error { return sendHello(records(helloMessage(a, 0), 16384)) },
	"pieces": func(a []string) error { return sendHello(records(helloMessage(a, 0), 1)) },
	"big":    func(a []string) error { return sendHello(records(helloMessage(a, 64000), 16384)) },
	"half":   func(a []string) error { return sendHello(records(helloMessage(a, 0), 16384)[:60]) },
	"second": func(a []string) error {
		return sendHello(append(records(helloMessage(a[:1], 0), 16384), records(helloMessage(a[1:], 0), 16384)...))
	},
	"ech":     actECH,
	"dns":     actDNS,
	"dnsslow": actSlowDNS,
	"many":    actMany,
}

// actGet asks as programs in Go do.
func actGet(a []string) error {
	c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	r, err := c.Get(a[0])
	if err != nil {
		return err
	}
	b, err := io.ReadAll(r.Body)
	fmt.Println(strings.TrimSpace(string(b)))
	return err
}

// actDial connects, sends each further argument, in which a backslash is as in Go, and prints what
// comes back in a while.
func actDial(a []string) error {
	var parts [][]byte
	for _, text := range a[1:] {
		text, err := strconv.Unquote(`"` + text + `"`)
		if err != nil {
			return err
		}
		parts = append(parts, []byte(text))
	}
	return talk("tcp", a[0], parts...)
}

// talk connects, sends bytes in several parts, and prints what comes back in a while.
func talk(network, to string, parts ...[]byte) error {
	c, err := net.Dial(network, to)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, b := range parts {
		if _, err := c.Write(b); err != nil {
			return err
		}
	}
	return printAnswer(c)
}

// printAnswer prints what a server sends until it pauses.
func printAnswer(c net.Conn) error {
	b := make([]byte, 65536)
	_ = c.SetReadDeadline(time.Now().Add(time.Second / 3))
	n, err := c.Read(b)
	fmt.Printf("%.300q\n", b[:n])
	return err
}

// actPeer connects, and then connects once more to the address that its peer has.
func actPeer(a []string) error {
	c, err := net.Dial("tcp", a[0])
	if err != nil {
		return err
	}
	defer c.Close()
	return actDial([]string{c.RemoteAddr().String(), a[1]})
}

// serverNames returns an extension of a ClientHello with server names: one list for each argument, of
// names that commas separate.
func serverNames(lists []string) []byte {
	var out []byte
	for _, list := range lists {
		var names []byte
		for name := range strings.SplitSeq(list, ",") {
			name, err := strconv.Unquote(`"` + name + `"`)
			if err == nil && list != "" {
				names = append(append(names, 0), sized(2, []byte(name))...)
			}
		}
		if list != "" || len(lists) > 1 {
			out = append(out, 0, 0)
			out = append(out, sized(2, sized(2, names))...)
		}
	}
	return out
}

// sized puts the size of some bytes before them, in n bytes.
func sized(n int, b []byte) []byte {
	size := make([]byte, 8)
	binary.BigEndian.PutUint64(size, uint64(len(b)))
	return append(size[8-n:], b...)
}

// helloMessage returns a ClientHello. padding is how many bytes come before the names.
func helloMessage(lists []string, padding int) []byte {
	b := []byte{3, 3}
	b = append(b, make([]byte, 32)...)
	b = append(b, 0)                // no session
	b = append(b, 0, 2, 0x13, 0x01) // a cipher
	b = append(b, 1, 0)             // no compression
	var ext []byte
	if padding > 0 {
		ext = append(ext, 0, 21)
		ext = append(ext, sized(2, make([]byte, padding))...)
	}
	ext = append(ext, serverNames(lists)...)
	ext = append(ext, 0, 43, 0, 3, 2, 3, 4) // TLS 1.3
	ext = append(ext, 0, 51)
	ext = append(ext, sized(2, sized(2, append([]byte{0, 29}, sized(2, make([]byte, 32))...)))...) // a key
	b = append(b, sized(2, ext)...)
	return append([]byte{1}, sized(3, b)...)
}

// records puts a message into records of some size.
func records(message []byte, most int) []byte {
	var out []byte
	for part := range slices.Chunk(message, most) {
		out = append(out, 22, 3, 1)
		out = append(out, sized(2, part)...)
	}
	return out
}

// sendHello sends bytes to the server for TLS.
func sendHello(b []byte) error { return talk("tcp", "a.example:443", b) }

// actECH asks with an encrypted ClientHello for a name within one for a.example.
func actECH([]string) error {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	config := []byte{7, 0, 0x20}
	config = append(config, sized(2, key.PublicKey().Bytes())...)
	config = append(config, sized(2, []byte{0, 1, 0, 1})...) // HKDF-SHA256, AES-128-GCM
	config = append(config, 64)
	config = append(config, sized(1, []byte("a.example"))...)
	config = append(config, 0, 0)
	list := sized(2, append([]byte{0xfe, 0x0d}, sized(2, config)...))
	d := net.Dialer{Timeout: 3 * time.Second}
	c, err := tls.DialWithDialer(&d, "tcp", "a.example:443", &tls.Config{
		ServerName: "evil.example", EncryptedClientHelloConfigList: list, MinVersion: tls.VersionTLS13,
	})
	if err == nil {
		c.Close()
	}
	return err
}

// dnsTypes are the types of questions, by name.
var dnsTypes = map[string]dnsmessage.Type{
	"A": dnsmessage.TypeA, "TXT": dnsmessage.TypeTXT, "MX": dnsmessage.TypeMX, "SRV": dnsmessage.TypeSRV, "HTTPS": 65,
	"ALL": dnsmessage.TypeALL, "AXFR": dnsmessage.TypeAXFR, "NULL": 10,
}

// actDNS asks a server questions: a network, the server, and pairs of a name and a type.
func actDNS(a []string) error {
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true}}
	for q := range slices.Chunk(a[2:], 2) {
		name, err := dnsmessage.NewName(q[0] + ".")
		if err != nil {
			return err
		}
		m.Questions = append(m.Questions, dnsmessage.Question{Name: name, Type: dnsTypes[q[1]], Class: dnsmessage.ClassINET})
	}
	b, err := m.Pack()
	if err != nil {
		return err
	}
	if a[0] == "tcp" {
		b = sized(2, b)
	}
	return talk(a[0], a[1]+":53", b)
}

// actSlowDNS has connections to a name server, each with one byte of a message, and sends others that
// are no messages. Then it asks a question.
func actSlowDNS(a []string) error {
	for range 300 {
		c, err := net.Dial("tcp", a[0]+":53")
		if err != nil {
			return err
		}
		defer c.Close()
		_, _ = c.Write([]byte{0xff})
	}
	for _, m := range [][]byte{
		bytes.Repeat([]byte("evil"), 16383),
		{0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 1, 0, 1},                 // a name that is where it is
		{0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 'a', 0xc0, 12, 0, 1, 0, 1},         // and one that goes on there
		{0, 1, 1, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 4, 'e', 'v', 'i', 'l', 0, 0, 1}, // questions that are not there
	} {
		_ = talk("tcp", a[0]+":53", sized(2, m)) // harmless: no answer is as good
	}
	return actDNS([]string{"tcp", a[0], "a.example", "A"})
}

// actMany connects to many names.
func actMany(a []string) error {
	n, err := strconv.Atoi(a[0])
	if err != nil {
		return err
	}
	for i := range n {
		c, err := net.Dial("tcp", fmt.Sprintf("n%d.evil.example:80", i))
		if err == nil {
			c.Close()
		}
	}
	return nil
}
