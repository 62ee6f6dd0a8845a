// SPDX-License-Identifier: Apache-2.0

// Package proxy connects the tools of an agent with the network: a proxy outside of the
// agent's cell that permits only what a [Policy] lists. It speaks HTTP CONNECT, plain
// HTTP in absolute form, SOCKS5 and SOCKS4a on one listener. The cell has no other network, so a tool
// that ignores its proxy settings reaches nothing. The proxy emits a [Connection] for every attempt.
//
// # What it guards against
//
//   - Hosts and ports that are not listed, whatever way they are spelled. A host is brought to one
//     spelling first; what has more than one reading ("127.1", "0x7f.1", "a@b", "%6c", a mapped IPv6
//     address) is refused rather than guessed.
//   - Names that lead inside. Names are looked up here, every address of the answer must be public, and
//     an address of that answer is what is dialled: there is no second lookup that could answer
//     otherwise. Loopback, private, link-local (cloud metadata), shared, multicast, reserved and
//     documentation addresses, and IPv6 addresses that carry an IPv4 one, are not public; neither
//     are the addresses of this machine. A name that is not listed is not looked up.
//   - Requests with two meanings. The proxy rewrites plain HTTP requests, for the host of the
//     request line, on a connection of their own. It checks each request of a connection.
//   - Use without end: headers, handshakes, idle connections and their number are bounded, and
//     nothing outlives [Proxy.Close].
//
// # What it does not guard against
//
//   - A permitted host that passes things on. A tool that may reach a host that relays, stores or
//     mirrors can reach, through it, whatever it reaches. A wildcard permits every host below it.
//   - Data inside a tunnel. TLS is not opened, so behind CONNECT and SOCKS neither the server
//     name nor the Host header is compared with the host that was checked. Servers that many domains
//     share can be asked for another of them.
//   - Data in names. The lookup of a permitted name is seen by the name servers of its domain: with a
//     wildcard, names can carry data out.
//   - Public addresses of the network around this machine, except the machine's own.
package proxy
