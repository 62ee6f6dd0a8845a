// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/drover-agents/drover/agentfile"
	"github.com/drover-agents/drover/gateway/proxy"
)

// checkHost refuses what is not a host that tools may be let reach.
func checkHost(host string) error {
	err := proxy.Policy{Domains: []string{host}}.Validate()
	if err == nil {
		return nil
	}
	_, reason, _ := strings.Cut(err.Error(), `": `)
	reason = strings.ReplaceAll(reason, "leave it out and set Localhost (NetworkPolicy.AllowLocalhost)", "leave it out, and say --allow-localhost")
	return errors.New(reason)
}

// checkNetwork refuses an agent file that lets tools reach this machine or the network around it, unless the
// command line says the same. Names lead to public addresses only: the proxy sees to that.
func (o *runOptions) checkNetwork(f *agentfile.File) error {
	if f.Isolation.Network.Localhost && !o.walls.localhost {
		return usageError("%s lets tools reach servers on this machine\n  next: say --allow-localhost if you trust the file", f.Path())
	}
	own, _ := net.InterfaceAddrs()
	for _, host := range f.Isolation.Network.Domains {
		if err := checkHost(host); err != nil {
			return usageError("%s: isolation.network.domains: %q: %w", f.Path(), host, err)
		}
		addr, is := privateAddress(host, own)
		said := func(flag string) bool { other, is := privateAddress(flag, own); return is && other == addr }
		if is && !slices.ContainsFunc(o.walls.domains, said) {
			return usageError("%s lets tools reach %s, which is an address of a private network or of this machine\n  next: say --allow-domain %[2]s if you trust the file", f.Path(), addr)
		}
	}
	return nil
}

// privateAddress is the address that a host is, if not everybody can reach it, or if it is one of this machine's own:
// servers there may answer nobody else. No other spelling of an address is a host.
func privateAddress(host string, own []net.Addr) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(strings.TrimSuffix(host, "."))
	shared := netip.MustParsePrefix("100.64.0.0/10")
	isOwn := func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr() == addr.Unmap().WithZone("")
	}
	return addr, err == nil && (addr.IsPrivate() || !addr.IsGlobalUnicast() || shared.Contains(addr) || slices.ContainsFunc(own, isOwn))
}
