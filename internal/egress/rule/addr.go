package rule

import (
	"encoding/binary"
	"net/netip"
)

// Class says what kind of address one is, in a word that follows "is"; "" if it is public.
// An IPv4 address within an IPv6 one counts as itself.
func Class(a netip.Addr) string {
	a = inner(a)
	for _, c := range classes {
		if c.prefix.Contains(a) {
			return c.word
		}
	}
	return ""
}

// loopback is the class of this machine's own addresses.
const loopback = "loopback"

// metadata is the class of servers that give a machine in a cloud its passwords.
const metadata = "a metadata server's"

// class is a prefix whose addresses are not public.
type class struct {
	prefix netip.Prefix
	word   string
}

// classes are the addresses that are not public, the more special first.
var classes = [...]class{
	{v4(127, 0, 0, 0, 8), loopback},
	{v4(0, 0, 0, 0, 32), loopback}, // Linux connects it to 127.0.0.1
	{v6(0, 0, 1, 128), loopback},
	{v6(0, 0, 0, 128), loopback},
	{v4(169, 254, 169, 254, 32), metadata},
	{v4(169, 254, 170, 2, 32), metadata},
	{v4(100, 100, 100, 200, 32), metadata},
	{v4(168, 63, 129, 16, 32), metadata},
	{v6(0xfd00_0ec2, 0, 0x254, 128), metadata},
	{v6(0xfd20_00ce, 0, 0x254, 128), metadata},
	{v4(169, 254, 0, 0, 16), "link-local"},
	{v6(0xfe80_0000, 0, 0, 10), "link-local"},
	{v4(10, 0, 0, 0, 8), "private"},
	{v4(172, 16, 0, 0, 12), "private"},
	{v4(192, 168, 0, 0, 16), "private"},
	{v4(100, 64, 0, 0, 10), "private"}, // shared by a provider's customers, and by VPNs
	{v6(0xfc00_0000, 0, 0, 7), "private"},
	{v6(0xfec0_0000, 0, 0, 10), "private"},
	{v4(224, 0, 0, 0, 4), "multicast"},
	{v6(0xff00_0000, 0, 0, 8), "multicast"},
	{v4(0, 0, 0, 0, 8), "reserved"},
	{v4(192, 0, 0, 0, 24), "reserved"},
	{v4(198, 18, 0, 0, 15), "reserved"},
	{v4(240, 0, 0, 0, 4), "reserved"},
	{v6(0x0064_ff9b, 0x0001_0000, 0, 48), "private"}, // a translator's of this network
	{v6(0x2001_0000, 0, 0, 32), "reserved"},          // Teredo: hides an IPv4 address
	// Only 2000::/3 is public. Some networks take others, such as 200::/7.
	{v6(0, 0, 0, 3), "reserved"},
	{v6(0x4000_0000, 0, 0, 2), "reserved"},
	{v6(0x8000_0000, 0, 0, 1), "reserved"},
}

func v4(a, b, c, d byte, bits int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{a, b, c, d}), bits)
}

// v6 makes a prefix from the first two groups of 32 bits and the last one.
func v6(first, second, last uint32, bits int) netip.Prefix {
	var b [16]byte
	binary.BigEndian.PutUint32(b[:], first)
	binary.BigEndian.PutUint32(b[4:], second)
	binary.BigEndian.PutUint32(b[12:], last)
	return netip.PrefixFrom(netip.AddrFrom16(b), bits)
}

// inner returns the IPv4 address that an IPv6 one stands for: mapped, by a translator of
// IPv6 networks (64:ff9b::/96) or by 6to4 (2002::/16). Others are returned as they are.
func inner(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if a.Is4() {
		return a
	}
	b := a.As16()
	if v6(0x0064_ff9b, 0, 0, 96).Contains(a) {
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	if b[0] == 0x20 && b[1] == 0x02 {
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return a
}

// ofThisMachine reports whether all addresses of a prefix are this machine's.
func ofThisMachine(p netip.Prefix) bool {
	for _, c := range classes {
		if c.word == loopback && c.prefix.Bits() <= p.Bits() && c.prefix.Contains(p.Addr()) {
			return true
		}
	}
	return false
}
