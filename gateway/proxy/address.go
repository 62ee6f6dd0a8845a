// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net"
	"net/netip"
)

// reserved are the blocks of addresses that are not public, and what they are for. Of IPv6 only 2000::/3 is in use for
// public addresses: what is outside of it needs no line here, but gets a better reason by one. The first match counts.
var reserved = []struct {
	block netip.Prefix
	what  string
}{
	{netip.MustParsePrefix("0.0.0.0/32"), "the unspecified address"},
	{netip.MustParsePrefix("0.0.0.0/8"), "an address of this network"},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private address"},
	{netip.MustParsePrefix("100.64.0.0/10"), "an address shared behind a carrier's NAT"},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private address"},
	{netip.MustParsePrefix("192.0.0.0/24"), "an address for protocols"},
	{netip.MustParsePrefix("192.0.2.0/24"), "an address for documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "an address of 6to4 relays"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private address"},
	{netip.MustParsePrefix("198.18.0.0/15"), "an address for benchmarks"},
	{netip.MustParsePrefix("198.51.100.0/24"), "an address for documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "an address for documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("255.255.255.255/32"), "the broadcast address"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address"},

	{netip.MustParsePrefix("::/128"), "the unspecified address"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("::/96"), "an IPv4-compatible address"},
	{netip.MustParsePrefix("::ffff:0:0/96"), "an IPv4-mapped address"},
	{netip.MustParsePrefix("64:ff9b::/96"), "a NAT64 address"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "a NAT64 address"},
	{netip.MustParsePrefix("2001::/32"), "a Teredo address"},
	{netip.MustParsePrefix("2001::/23"), "an address for protocols"},
	{netip.MustParsePrefix("2001:db8::/32"), "an address for documentation"},
	{netip.MustParsePrefix("2002::/16"), "a 6to4 address"},
	{netip.MustParsePrefix("3fff::/20"), "an address for documentation"},
	{netip.MustParsePrefix("fc00::/7"), "a private address"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("fec0::/10"), "a site-local address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
}

var publicIPv6 = netip.MustParsePrefix("2000::/3")

// notPublic describes an address that is not public; it is empty for a public one.
func notPublic(addr netip.Addr) string {
	if !addr.IsValid() {
		return "no address"
	}
	if addr.Zone() != "" {
		return "an address with a zone"
	}
	for _, r := range reserved {
		if r.block.Contains(addr) {
			return r.what
		}
	}
	if addr.Is6() && !publicIPv6.Contains(addr) {
		return "a reserved address"
	}
	return ""
}

// listable reports whether an address that is not public may be permitted by naming it. The others
// are unassigned, lead to IPv4 addresses in disguise, or hand out the machine's credentials.
func listable(addr netip.Addr) bool {
	return addr.IsPrivate() || netip.MustParsePrefix("100.64.0.0/10").Contains(addr)
}

// ownAddresses are those of this machine. A public one leads to services that listen on all addresses, as loopback does.
func ownAddresses() []netip.Addr {
	// Without a list the public addresses are as good as any others.
	interfaces, _ := net.InterfaceAddrs()
	own := make([]netip.Addr, 0, len(interfaces))
	for _, i := range interfaces {
		if block, ok := i.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(block.IP); ok {
				own = append(own, addr.Unmap())
			}
		}
	}
	return own
}
