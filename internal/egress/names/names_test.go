package names

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/zsbx/zsbx/internal/egress"
	"github.com/zsbx/zsbx/internal/egress/rule"
)

// world is an upstream that a test makes up, and what it was asked.
type world struct {
	mu    sync.Mutex
	addrs map[string]string // separated by spaces
	asked []string
	now   time.Time
}

func (w *world) lookup(_ context.Context, name string) ([]netip.Addr, time.Duration, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, name)
	text, ok := w.addrs[name]
	if !ok {
		return nil, 0, fmt.Errorf("upstream: %w", ErrNotFound)
	}
	if text == "fails" {
		return nil, 0, errors.New("no answer")
	}
	return addrs(text), 20 * time.Second, nil
}

func addrs(text string) (out []netip.Addr) {
	for _, f := range strings.Fields(text) {
		out = append(out, netip.MustParseAddr(f))
	}
	return out
}

// rules makes a set; "private " and "!" stand before a rule.
func rules(t testing.TB, all ...string) *rule.Set {
	var allowed, denied []rule.Rule
	for _, text := range all {
		text, private := strings.CutPrefix(text, "private ")
		r, err := rule.Parse(strings.TrimPrefix(text, "!"), rule.Marks{Private: private})
		if text[0] == '!' {
			r, err = rule.ParseDenial(text[1:])
			denied = append(denied, r)
		} else {
			allowed = append(allowed, r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return rule.NewSet(allowed, denied)
}

// newWorld has a resolver before an upstream.
func newWorld(t testing.TB, change func(*Config)) (*world, *Resolver) {
	w := &world{now: time.Unix(1e9, 0), addrs: map[string]string{
		"packages.example": "203.0.113.1 203.0.113.2 2001:db8:1::1", "code.example": "203.0.113.1", "a.files.example": "203.0.113.9",
		"inside.example": "10.0.0.1 127.0.0.1 169.254.169.254 ::1 ::ffff:10.0.0.1 64:ff9b::a00:1 2002:a00:1:: fe80::1 224.0.0.1 198.18.0.7 ::ffff:0:a00:1 200::1 4000::1 9000::1",
		"mixed.example":  "10.0.0.1 203.0.113.5", "corp.example": "10.0.0.9 198.18.0.7", "broken.example": "fails", "secret.files.example": "203.0.113.66",
	}}
	c := Config{
		Rules: rules(t, "packages.example", "code.example:22", "*.files.example", "inside.example", "mixed.example", "private corp.example",
			"broken.example", "gone.example", "hosts.example", "private dev.example", "loop.example", "!secret.files.example"),
		Lookup: w.lookup,
		Search: []string{"corp.local"},
		Hosts: []Entry{{netip.MustParseAddr("203.0.113.80"), []string{"Hosts.Example", "other.example"}},
			{netip.MustParseAddr("127.0.0.1"), []string{"localhost", "dev.example", "loop.example"}}},
		Now: func() time.Time {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.now
		},
	}
	if change != nil {
		change(&c)
	}
	return w, New(c)
}

// question writes a message that asks for a name.
func question(t testing.TB, name string, kind dnsmessage.Type) []byte {
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	out, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ask returns the answer to a question as text.
func ask(t testing.TB, r *Resolver, name string, kind dnsmessage.Type) string {
	var m dnsmessage.Message
	if err := m.Unpack(r.Answer(t.Context(), question(t, name, kind))); err != nil {
		t.Fatal(err)
	}
	if m.ID != 7 || !m.Response || m.Questions[0].Name.String() != name {
		t.Errorf("%s: %+v", name, m.Header)
	}
	words := []string{strings.TrimPrefix(m.RCode.String(), "RCode")}
	for _, a := range m.Answers {
		switch b := a.Body.(type) {
		case *dnsmessage.AResource:
			words = append(words, netip.AddrFrom4(b.A).String())
		case *dnsmessage.AAAAResource:
			words = append(words, netip.AddrFrom16(b.AAAA).String())
		case *dnsmessage.PTRResource:
			words = append(words, b.PTR.String())
		}
	}
	return strings.Join(words, " ")
}

const (
	typeA    = dnsmessage.TypeA
	typeAAAA = dnsmessage.TypeAAAA
)

// TestAnswers: what each name has, and that nothing but allowed names is ever asked upstream.
func TestAnswers(t *testing.T) {
	w, r := newWorld(t, nil)
	for _, c := range []struct {
		name string
		kind dnsmessage.Type
		want string
	}{
		{"packages.example.", typeA, "Success 203.0.113.1 203.0.113.2"},
		{"PACKAGES.Example.", typeAAAA, "Success 2001:db8:1::1"},
		{"packages.example.", dnsmessage.TypeTXT, "Success"},
		{"x.files.example.", dnsmessage.Type(10), "Success"},
		{"secret-in-a-label.files.example.", dnsmessage.TypeMX, "Success"},
		{"packages.example.", dnsmessage.TypeALL, "Success"},
		{"code.example.", typeA, "Success 203.0.113.1"},
		{"a.files.example.", typeA, "Success 203.0.113.9"},
		{"b.files.example.", typeA, "NameError"},
		{"gone.example.", typeA, "NameError"},
		{"broken.example.", typeA, "ServerFailure"},
		{"mixed.example.", typeA, "Success 203.0.113.5"},
		{"corp.example.", typeA, "Success 10.0.0.9"},
		{"inside.example.", typeA, "Success 198.18.0.1"},
		{"inside.example.", typeAAAA, "Success 100::1"},
		{"evil.example.", typeA, "Success 198.18.0.2"},
		{"EVIL.example.", typeAAAA, "Success 100::2"},
		{"evil.example.", dnsmessage.TypeTXT, "Success"},
		{"secret.files.example.", typeA, "Success 198.18.0.3"},
		{"files.example.", typeA, "Success 198.18.0.4"},
		{"packages.example.corp.local.", typeA, "NameError"},
		{"packages.example.anything.", typeA, "NameError"},
		{"evil.example.corp.local.", typeA, "NameError"},
		{"npm.", typeA, "NameError"},
		{".", typeA, "NameError"},
		{"evil.arpa.", typeA, "NameError"},
		{"a b.example.", typeA, "NameError"},
		{"localhost.", typeA, "Success 127.0.0.1"},
		{"x.localhost.", typeAAAA, "Success ::1"},
		{"hosts.example.", typeA, "Success 203.0.113.80"},
		{"dev.example.", typeA, "Success 127.0.0.1"},
		{"1.113.0.203.in-addr.arpa.", dnsmessage.TypePTR, "Success packages.example."},
		{"9.9.9.9.in-addr.arpa.", dnsmessage.TypePTR, "NameError"},
		{"x.in-addr.arpa.", dnsmessage.TypePTR, "NameError"},
		{"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.", dnsmessage.TypePTR, "Success packages.example."},
		{"packages.example.", dnsmessage.TypePTR, "NameError"},
	} {
		if got := ask(t, r, c.name, c.kind); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.name, c.kind, got, c.want)
		}
	}
	slices.Sort(w.asked)
	want := "[a.files.example b.files.example broken.example code.example corp.example gone.example inside.example mixed.example packages.example]"
	if got := fmt.Sprint(w.asked); got != want {
		t.Errorf("upstream was asked for %s", got)
	}
}

// TestAsk: what a connection to an address that was handed out asks for.
func TestAsk(t *testing.T) {
	_, r := newWorld(t, nil)
	for _, n := range []string{"packages.example.", "code.example.", "inside.example.", "evil.example.", "corp.example."} {
		ask(t, r, n, typeA)
	}
	for addr, want := range map[string]string{
		"203.0.113.1":        "packages.example code.example 203.0.113.1 true",
		"::ffff:203.0.113.2": "packages.example 203.0.113.2 true",
		"203.0.113.3":        " 203.0.113.3 false",
		"198.18.0.1":         "inside.example 10.0.0.1 false",
		"198.18.0.2":         "evil.example invalid IP false",
		"10.0.0.9":           "corp.example 10.0.0.9 true",
		"203.0.113.80":       "hosts.example 203.0.113.80 true",
		"127.0.0.1":          "dev.example 127.0.0.1 true",
	} {
		a := r.Ask(netip.MustParseAddr(addr), 443)
		v := r.Rules.Decide(a)
		if got := fmt.Sprintf("%s %v %v", strings.Join(a.Names, " "), a.Addr, v.Allowed()); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
	if got := fmt.Sprint(r.Addrs([]string{"packages.example", "code.example"})); got != "[203.0.113.1]" {
		t.Errorf("common addresses: %s", got)
	}
}

// TestModes: names that don't exist, names that nobody knows, and names that only a proxy knows.
func TestModes(t *testing.T) {
	var refused []string
	_, r := newWorld(t, func(c *Config) {
		c.NXDomain = true
		c.Events = func(e egress.Event) { refused = append(refused, e.Verdict.Line("")) }
	})
	for _, n := range []string{"evil.example.", "inside.example.", "evil.corp.local."} {
		if got := ask(t, r, n, typeA); got != "NameError" {
			t.Errorf("%s: %s", n, got)
		}
	}
	if len(refused) != 2 || !strings.Contains(refused[1], "--allow-private-host inside.example") {
		t.Errorf("refused: %q", refused)
	}
	refused = nil
	_, r = newWorld(t, func(c *Config) {
		c.Events = func(e egress.Event) { refused = append(refused, e.Verdict.Line("")) }
	})
	ask(t, r, "gone.example.", typeA)
	ask(t, r, "broken.example.", typeA)
	if fmt.Sprint(refused) != "[broken.example: its name could not be resolved]" {
		t.Errorf("upstream does not answer: %q", refused)
	}
	_, r = newWorld(t, func(c *Config) { c.Synthetic = true })
	if got := ask(t, r, "gone.example.", typeA); got != "Success 198.18.0.1" {
		t.Errorf("behind a proxy: %s", got)
	}
	v := r.Rules.Decide(r.Ask(netip.MustParseAddr("198.18.0.1"), 443))
	if !v.Allowed() || v.Host != "gone.example" {
		t.Errorf("behind a proxy: %+v", v)
	}
}

// TestMoves: an answer is kept for its time; then what upstream says is handed out, and what was is
// still known.
func TestMoves(t *testing.T) {
	w, r := newWorld(t, nil)
	ask(t, r, "code.example.", typeA)
	w.addrs["code.example"] = "203.0.113.7"
	if got := ask(t, r, "code.example.", typeA); got != "Success 203.0.113.1" {
		t.Errorf("at once: %s", got)
	}
	w.now = w.now.Add(time.Minute)
	if got := ask(t, r, "code.example.", typeA); got != "Success 203.0.113.7" {
		t.Errorf("later: %s", got)
	}
	if r.Ask(netip.MustParseAddr("203.0.113.1"), 22).Names == nil {
		t.Error("the old address is forgotten")
	}
}

// TestBindings: what was not used goes, what is kept stays.
func TestBindings(t *testing.T) {
	table := newTable(10)
	at := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)}) }
	for i := range 10 {
		table.bind(at(i), "a.example")
	}
	table.keep(at(0))
	table.get(at(1))
	for i := range 8 {
		table.bind(at(100+i), "b.example")
	}
	for i, want := range []bool{true, true, false, false} {
		_, ok := table.get(at(i))
		if ok != want {
			t.Errorf("address %d: %v", i, ok)
		}
	}
	large := newTable(1000)
	for i := range 20000 {
		large.bind(at(i%500), fmt.Sprintf("n%d.example", i/4))
	}
	one := newTable(1000)
	for i := range 1000 {
		one.bind(at(0), fmt.Sprintf("n%d.example", i))
	}
	b, _ := one.get(at(0))
	if len(b.names) != namesOfOne || len(one.names) != namesOfOne || large.pairs > 4000 || len(large.names) > 4000 {
		t.Errorf("%d names of one address; %d names and %d pairs of many", len(b.names), len(large.names), large.pairs)
	}
	for i := range 10 {
		table.bind(at(200+i), "c.example")
		table.keep(at(200 + i))
	}
	if table.bind(at(300), "d.example") {
		t.Error("all are kept, and there is place")
	}
}

// TestInventions: a flood of names that are not allowed uses no more memory than the table.
func TestInventions(t *testing.T) {
	_, r := newWorld(t, nil)
	for i := range 40000 {
		r.invent(fmt.Sprintf("n%d.example", i), netip.Addr{})
	}
	if n := len(r.fake.by); n != mostBindings {
		t.Errorf("%d are remembered", n)
	}
}

// TestMessages: messages that no client of good faith sends.
func TestMessages(t *testing.T) {
	_, r := newWorld(t, nil)
	good := question(t, "packages.example.", typeA)
	two := slices.Clone(good)
	two[5] = 2
	both := append(slices.Clone(two), good[12:]...)
	loop := append(slices.Clone(good[:12]), 0xc0, 12, 0, 1, 0, 1)
	response := slices.Clone(good)
	response[2] |= 0x80
	update := slices.Clone(good)
	update[2] |= 5 << 3
	long := append(slices.Clone(good[:12]), []byte(strings.Repeat("\x3f"+strings.Repeat("a", 63), 4)+"\x00\x00\x01\x00\x01")...)
	chaos := slices.Clone(good)
	chaos[len(chaos)-1] = 3
	for name, c := range map[string]struct {
		message []byte
		want    int // the code, or -1 for no answer
	}{
		"short": {good[:11], -1}, "empty": {nil, -1}, "header": {good[:12], 1}, "cut": {good[:20], 1}, "two": {two, 1}, "two questions": {both, 1},
		"loop": {loop, 1}, "response": {response, -1}, "update": {update, 4}, "long": {long, 1}, "chaos": {chaos, 5}, "huge": {make([]byte, 5000), -1},
		"good": {good, 0},
	} {
		out := r.Answer(t.Context(), c.message)
		got := -1
		if out != nil {
			got = int(out[3] & 15)
		}
		if got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestSizes: a long answer is cut by UDP, and whole by TCP, whatever pieces the question comes in.
func TestSizes(t *testing.T) {
	w, r := newWorld(t, nil)
	var all []string
	for i := range 60 {
		all = append(all, fmt.Sprintf("203.0.113.%d", i))
	}
	w.addrs["packages.example"] = strings.Join(all, " ")
	q := question(t, "packages.example.", typeA)
	var m dnsmessage.Message
	out := r.Answer(t.Context(), q)
	if err := m.Unpack(out); err != nil || !m.Truncated || len(m.Answers) > 0 || len(out) > 512 {
		t.Errorf("by UDP: %+v, %v", m.Header, err)
	}
	ours, theirs := net.Pipe()
	go r.Serve(t.Context(), theirs)
	framed := append(binary.BigEndian.AppendUint16(nil, uint16(len(q))), q...)
	for i := range framed {
		ours.Write(framed[i : i+1])
	}
	var size [2]byte
	io.ReadFull(ours, size[:])
	out = make([]byte, binary.BigEndian.Uint16(size[:]))
	io.ReadFull(ours, out)
	if err := m.Unpack(out); err != nil || m.Truncated || len(m.Answers) != 60 {
		t.Errorf("by TCP: %d answers, %v", len(m.Answers), err)
	}
	ours.Write([]byte{0xff, 0xff})
	if n, err := ours.Read(size[:]); err == nil {
		t.Errorf("a message of 65,535 bytes: %d bytes come back", n)
	}
}

// TestBusy: a name is asked for once at a time, and only so many names are.
func TestBusy(t *testing.T) {
	wait := make(chan bool)
	asked := make(chan string, 2*mostAsked)
	_, r := newWorld(t, func(c *Config) {
		c.Rules = rules(t, "*.files.example")
		c.Lookup = func(_ context.Context, name string) ([]netip.Addr, time.Duration, error) {
			asked <- name
			<-wait
			return addrs("203.0.113.1"), 0, nil
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var group sync.WaitGroup
	for i := range 2 * mostAsked {
		group.Go(func() { r.Find(ctx, fmt.Sprintf("n%d.files.example", i/2)) })
	}
	group.Wait()
	if f := r.Find(t.Context(), "one-more.files.example"); f.Err != errBusy {
		t.Errorf("one more: %v", f.Err)
	}
	names := map[string]bool{}
	for range mostAsked {
		names[<-asked] = true
	}
	close(wait)
	if len(names) != mostAsked || len(asked) > 0 {
		t.Errorf("upstream is asked for %d names, and %d times more", len(names), len(asked))
	}
}

// FuzzDNS: nothing panics, what is answered is a message, and only allowed names are asked upstream.
func FuzzDNS(f *testing.F) {
	for _, n := range []string{"packages.example.", "evil.example.", "1.113.0.203.in-addr.arpa.", "a.files.example."} {
		f.Add(question(f, n, typeA))
		f.Add(question(f, n, dnsmessage.TypePTR))
	}
	w, r := newWorld(f, nil)
	f.Fuzz(func(t *testing.T, message []byte) {
		out := r.Answer(t.Context(), message)
		if out == nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(out); err != nil || len(out) > 1232 || !m.Response {
			t.Fatalf("%d bytes, %v", len(out), err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, name := range w.asked {
			if v := r.Rules.Decide(rule.Ask{Names: []string{name}}); !v.Allowed() {
				t.Fatalf("upstream was asked for %q", name)
			}
		}
		w.asked = w.asked[:0]
	})
}
