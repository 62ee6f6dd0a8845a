// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-agents/drover/gateway/proxy"
)

// A NetworkPolicy is what the agent's tools may reach. It does not limit the way to the model, which
// goes through the gateway. The zero value permits no network.
type NetworkPolicy struct {
	// AllowedDomains are the hosts that tools may reach: "example.com", "*.example.com", an address,
	// or "*" for all. Empty means none.
	AllowedDomains []string
	// AllowedPorts are the ports of those hosts. Nil means all; empty and not nil means none.
	AllowedPorts []int
	// AllowLocalhost lets tools reach servers on the host's loopback. In a cell tools may always listen on its own loopback.
	AllowLocalhost bool
	// AllowLocalBinding lets tools listen on the loopback of the host where they share it (Landlock,
	// and the CLI's sandbox on macOS). In a cell they have their own, and it changes nothing.
	AllowLocalBinding bool
	// UnixSockets are paths of sockets that tools may connect to. Each gives away what the program behind it can do: the
	// socket of Docker is the machine. The CLI's own sandbox knows paths on macOS only.
	UnixSockets []string
	// AllowAllUnixSockets allows every socket. A cell refuses it: name the sockets.
	AllowAllUnixSockets bool
	// HTTPProxyPort and SOCKSProxyPort are ports of a proxy of yours on the host's loopback, which
	// then carries what tools send and decides what they may reach. Zero means Drover's own proxy.
	// AllowedDomains and AllowedPorts cannot be given together with them.
	HTTPProxyPort, SOCKSProxyPort int
}

// NoNetwork is the policy under which tools reach nothing.
func NoNetwork() *NetworkPolicy { return &NetworkPolicy{} }

// WithDomains lets tools reach these hosts and nothing else.
func WithDomains(domains ...string) *NetworkPolicy {
	return &NetworkPolicy{AllowedDomains: slices.Clone(domains)}
}

// Open reports whether the policy restricts nothing.
func (p *NetworkPolicy) Open() bool {
	return p != nil && slices.Contains(p.AllowedDomains, "*") && p.AllowedPorts == nil
}

// Validate refuses what cannot be enforced at this level on this operating system (a GOOS), with the
// reason. A nil policy permits no network and is valid everywhere: an event reports where it is not enforced.
func (p *NetworkPolicy) Validate(level Level, goos string) error {
	if p == nil {
		return nil
	}
	if err := p.validateValues(); err != nil {
		return err
	}
	for _, rule := range networkRules {
		if rule.broken(p, level, goos) {
			return &RefusedError{Field: "Network." + rule.field, Reason: rule.reason, Level: level, GOOS: goos, Next: rule.next}
		}
	}
	return nil
}

// networkRules are the settings that cannot be enforced somewhere.
var networkRules = []struct {
	field  string
	broken func(p *NetworkPolicy, level Level, goos string) bool
	reason string
	next   string
}{
	{
		field:  "AllowAllUnixSockets",
		broken: func(p *NetworkPolicy, level Level, _ string) bool { return p.AllowAllUnixSockets && level == LevelCell },
		reason: "a cell sees only what is put into it, and cannot be given every socket of the host",
		next:   "name the sockets in Network.UnixSockets",
	},
	{
		field: "UnixSockets",
		broken: func(p *NetworkPolicy, level Level, goos string) bool {
			return len(p.UnixSockets) > 0 && level == LevelSandbox && goos == "linux"
		},
		reason: "the CLI's own sandbox cannot tell sockets apart by path on Linux",
		next:   "run in a cell, or set Network.AllowAllUnixSockets",
	},
	{
		field: "UnixSockets",
		broken: func(p *NetworkPolicy, level Level, _ string) bool {
			return len(p.UnixSockets) > 0 && !p.AllowAllUnixSockets && level == LevelLandlock
		},
		reason: "Landlock does not limit sockets in the file system, so that naming some would keep out no other",
		next:   "run in a cell, or set Network.AllowAllUnixSockets too",
	},
	{
		field: "AllowedPorts",
		broken: func(p *NetworkPolicy, level Level, _ string) bool {
			return p.AllowedPorts != nil && level == LevelSandbox
		},
		reason: "the CLI's own sandbox knows hosts, not ports",
		next:   "run in a cell, or leave AllowedPorts nil",
	},
	{
		field: "HTTPProxyPort",
		broken: func(p *NetworkPolicy, _ Level, _ string) bool {
			return p.ownProxy() && (len(p.AllowedDomains) > 0 || p.AllowedPorts != nil)
		},
		reason: "a proxy of yours does not know AllowedDomains and AllowedPorts, so that they would not hold",
		next:   "give either the proxy or the domains",
	},
	{
		field: "AllowedDomains",
		broken: func(p *NetworkPolicy, level Level, _ string) bool {
			return level == LevelHost && !p.Open()
		},
		reason: "without isolation tools can reach the whole network",
		next:   `run in a cell, or say what is so with AllowedDomains "*"`,
	},
}

func (p *NetworkPolicy) ownProxy() bool { return p.HTTPProxyPort != 0 || p.SOCKSProxyPort != 0 }

// validateValues refuses what makes sense nowhere.
func (p *NetworkPolicy) validateValues() error {
	for _, domain := range p.AllowedDomains {
		if reason := badDomain(domain); reason != "" {
			return &RefusedError{Field: "Network.AllowedDomains", Reason: fmt.Sprintf("%q %s", domain, reason), Next: `write a host name such as "example.com" or "*.example.com", an address, or "*"`}
		}
	}
	for _, port := range p.AllowedPorts {
		if port < 1 || port > 65535 {
			return &RefusedError{Field: "Network.AllowedPorts", Reason: fmt.Sprintf("%d is not a port", port), Next: "give ports from 1 to 65535"}
		}
	}
	for _, port := range []int{p.HTTPProxyPort, p.SOCKSProxyPort} {
		if port < 0 || port > 65535 {
			return &RefusedError{Field: "Network.HTTPProxyPort, SOCKSProxyPort", Reason: fmt.Sprintf("%d is not a port", port), Next: "give a port from 1 to 65535, or 0 for Drover's own proxy"}
		}
	}
	for _, path := range p.UnixSockets {
		if !filepath.IsAbs(path) {
			return &RefusedError{Field: "Network.UnixSockets", Reason: fmt.Sprintf("%q is not an absolute path", path), Next: "give the whole path of the socket"}
		}
	}
	return nil
}

// badDomain describes the error in an entry of AllowedDomains, or is "".
func badDomain(domain string) string {
	switch {
	case domain == "*":
		return ""
	case strings.TrimSpace(domain) == "":
		return "is empty"
	case strings.Contains(domain, "://"), strings.ContainsAny(domain, "/ \t\r\n@?#"):
		return "is not a host alone"
	case strings.Contains(strings.TrimPrefix(domain, "*."), "*"):
		return `has a "*" that is not the whole first part`
	}
	return ""
}

func (i *Isolation) network() NetworkPolicy {
	if i.Network == nil {
		return *NoNetwork()
	}
	return *i.Network
}

func (i *Isolation) proxyPolicy() proxy.Policy {
	n := i.network()
	return proxy.Policy{Domains: n.AllowedDomains, Ports: n.AllowedPorts, Localhost: n.AllowLocalhost}
}
