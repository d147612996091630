package names

import (
	"container/list"
	"encoding/binary"
	"net/netip"
	"slices"
	"sync"
)

// binding is what an address was handed out for.
type binding struct {
	addr   netip.Addr
	names  []string   // never changed in place
	behind netip.Addr // of an invented address: the real one, which is refused
	kept   bool       // it is never forgotten
	place  *list.Element
}

// table has the bindings of addresses. If there are too many, that which was not used for the longest
// time goes; those that are kept stay.
type table struct {
	mu    sync.Mutex
	by    map[netip.Addr]*binding
	names map[string][]netip.Addr
	used  *list.List // of *binding, the last used first
	most  int
	pairs int    // of addresses and names
	next  uint32 // the number of the next invented address
}

func newTable(most int) *table {
	return &table{by: map[netip.Addr]*binding{}, names: map[string][]netip.Addr{}, used: list.New(), most: most}
}

// namesOfOne is how many names one address may have: a wildcard allows any number.
const namesOfOne = 256

// bind says that an address was handed out for a name. It is false if there is no room.
func (t *table) bind(addr netip.Addr, name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.by[addr]
	if b != nil {
		t.used.MoveToFront(b.place)
	}
	if b != nil && slices.Contains(b.names, name) {
		return true
	}
	if !t.room(b == nil) {
		return false
	}
	if b == nil {
		b = &binding{addr: addr}
		b.place = t.used.PushFront(b)
		t.by[addr] = b
	}
	if len(b.names) == namesOfOne {
		t.forget(b, b.names[0])
	}
	b.names = append(slices.Clone(b.names), name)
	t.names[name] = append(slices.Clone(t.names[name]), addr)
	t.pairs++
	return true
}

// room makes room for one more name of an address, which may be a new one. The last used address stays.
func (t *table) room(another bool) bool {
	const each = 4 // names that an address has, on an average
	full := func() bool { return another && len(t.by) >= t.most || t.pairs >= each*t.most }
	for e := t.used.Back(); e != nil && e != t.used.Front() && full(); {
		b := e.Value.(*binding)
		e = e.Prev()
		if !b.kept {
			t.drop(b)
		}
	}
	return !full()
}

// drop removes an address.
func (t *table) drop(b *binding) {
	for len(b.names) > 0 {
		t.forget(b, b.names[0])
	}
	t.used.Remove(b.place)
	delete(t.by, b.addr)
}

// forget removes one name of an address.
func (t *table) forget(b *binding, name string) {
	b.names = slices.DeleteFunc(slices.Clone(b.names), func(n string) bool { return n == name })
	left := slices.DeleteFunc(slices.Clone(t.names[name]), func(a netip.Addr) bool { return a == b.addr })
	t.names[name] = left
	if len(left) == 0 {
		delete(t.names, name)
	}
	t.pairs--
}

// get returns a copy of what is known of an address.
func (t *table) get(addr netip.Addr) (binding, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.by[addr]
	if b == nil {
		return binding{}, false
	}
	t.used.MoveToFront(b.place)
	return *b, true
}

// of returns the addresses that were handed out for a name.
func (t *table) of(name string) []netip.Addr {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.names[name])
}

// keep makes an address stay, if it is known.
func (t *table) keep(addr netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b := t.by[addr]; b != nil {
		b.kept = true
	}
}

// Addresses that no machine has: 198.18.0.0/15, for benchmarks of routers, and 100::/64, which is
// discarded.
var (
	fake4 = netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, 0, 0}), 15)
	fake6 = netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 1}), 64)
)

// synthetic reports whether an address is none that a machine can have.
func synthetic(a netip.Addr) bool { return fake4.Contains(a) || fake6.Contains(a) }

// invented returns the addresses with a number.
func invented(n uint32) [2]netip.Addr {
	first := fake4.Addr().As4()
	a4 := binary.BigEndian.AppendUint32(nil, binary.BigEndian.Uint32(first[:])+n)
	a6 := fake6.Addr().As16()
	binary.BigEndian.PutUint32(a6[12:], n)
	return [2]netip.Addr{netip.AddrFrom4([4]byte(a4)), netip.AddrFrom16(a6)}
}

// invent hands out addresses that no machine has, the same ones as long as they are remembered.
func (r *Resolver) invent(name string, behind netip.Addr) Found {
	r.fake.mu.Lock()
	pair := r.fake.pairOf(name)
	r.fake.mu.Unlock()
	for _, a := range pair {
		if !r.fake.bind(a, name) {
			return Found{Err: errFull}
		}
		r.fake.hide(a, behind)
	}
	return Found{Addrs: pair[:]}
}

// pairOf returns the addresses of a name, or new ones.
func (t *table) pairOf(name string) [2]netip.Addr {
	if all := t.names[name]; len(all) == 2 {
		return [2]netip.Addr(all)
	}
	const all = 1<<17 - 2 // in fake4, without the first and the last
	for {
		pair := invented(1 + t.next%all)
		t.next++
		if t.by[pair[0]] == nil && t.by[pair[1]] == nil {
			return pair
		}
	}
}

// hide says which address an invented one stands for, if any.
func (t *table) hide(addr, behind netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b := t.by[addr]; b != nil {
		b.behind = behind
	}
}
