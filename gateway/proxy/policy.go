// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/drover-agents/drover/advice"
)

// A Policy lists the hosts and ports that may be reached. The zero value permits none.
type Policy struct {
	// Domains are the hosts that may be reached: "example.org" is that host alone, "*.example.org" every host below it but
	// not itself, "*" every public host and address. An address that is listed exactly ("10.1.2.3", "fd00::1") may be
	// reached by that address even if it is private. Case and a final dot do not matter; international names may be written
	// either way. Empty permits nothing.
	Domains []string
	// Ports are the ports that may be reached. Nil permits all, empty none.
	Ports []int
	// Localhost permits localhost, 127.0.0.1 and ::1 of the machine outside of the cell, on Ports.
	Localhost bool
}

// Validate names everything that is wrong in the policy, and what to write instead.
func (p Policy) Validate() error {
	_, err := p.compile()
	return err
}

// rules are a policy in the form in which it is asked.
type rules struct {
	everything bool
	names      map[string]bool
	parents    map[string]bool // of "*.example.org": "example.org"
	addrs      map[netip.Addr]bool
	ports      []int
	anyPort    bool
	localhost  bool
}

func (p Policy) compile() (*rules, error) {
	r := &rules{
		names: map[string]bool{}, parents: map[string]bool{}, addrs: map[netip.Addr]bool{},
		ports: slices.Clone(p.Ports), anyPort: p.Ports == nil, localhost: p.Localhost,
	}
	var wrong []error
	for i, pattern := range p.Domains {
		if err := r.add(pattern); err != nil {
			wrong = append(wrong, fmt.Errorf("proxy: Domains[%d] %q: %w", i, pattern, err))
		}
	}
	for i, port := range p.Ports {
		if port < 1 || port > 65535 {
			wrong = append(wrong, advice.Wrap(fmt.Errorf("proxy: Ports[%d] %d: there is no such port", i, port), "write a number from 1 to 65535"))
		}
	}
	return r, errors.Join(wrong...)
}

func (r *rules) add(pattern string) error {
	if pattern == "*" {
		r.everything = true
		return nil
	}
	if _, err := netip.ParsePrefix(pattern); err == nil {
		return advice.Wrap(errors.New("ranges of addresses cannot be permitted"), "list each address")
	}
	parent, wild := strings.CutPrefix(pattern, "*.")
	h, err := parseHost(parent)
	if err != nil {
		return instead(pattern, err)
	}
	switch {
	case h.name == "localhost" || strings.HasSuffix(h.name, ".localhost") || h.addr.IsLoopback():
		return advice.Wrap(errors.New("it is this machine"), "leave it out and set Localhost (NetworkPolicy.AllowLocalhost)")
	case h.addr.IsValid() && wild:
		return advice.Wrap(errors.New("addresses have no subdomains"), "write %q", h)
	case h.addr.IsValid():
		return r.addAddress(h.addr)
	case wild:
		r.parents[h.name] = true
	default:
		r.names[h.name] = true
	}
	return nil
}

func (r *rules) addAddress(addr netip.Addr) error {
	if what := notPublic(addr); what != "" && !listable(addr) {
		return advice.Wrap(fmt.Errorf("it is %s, which cannot be permitted", what), "leave it out")
	}
	r.addrs[addr] = true
	return nil
}

// instead explains a pattern that is not understood.
func instead(pattern string, err error) error {
	switch {
	case strings.Contains(pattern, "://"):
		err = errors.New("it is a URL")
	case strings.Contains(pattern, "/"):
		err = errors.New("the proxy does not see paths")
	case strings.Count(pattern, ":") == 1:
		err = errors.New("ports have a field of their own")
	}
	suggestion := suggest(pattern)
	if suggestion == "" {
		suggestion = `a host ("example.org"), its subdomains ("*.example.org"), an address, or "*"`
	} else {
		suggestion = fmt.Sprintf("%q", suggestion)
	}
	return advice.Wrap(err, "write %s", suggestion)
}

// suggest is the pattern that was probably meant, or empty.
func suggest(pattern string) string {
	text := strings.TrimSpace(pattern)
	if _, rest, found := strings.Cut(text, "://"); found {
		text = rest
	}
	text, _, _ = strings.Cut(text, "/")
	text = text[strings.LastIndexByte(text, '@')+1:]
	if hostText, _, err := splitTarget(text); err == nil && hostText != "" && !strings.Contains(hostText, ":") {
		text = hostText
	}
	text = strings.Trim(text, "[]")
	if strings.Contains(text, "*") && strings.Trim(text, "*.") == "" {
		return "*"
	}
	text = "*" + strings.TrimLeft(text, "*")
	if !strings.HasPrefix(text, "*.") {
		text = text[1:]
	}
	if _, err := parseHost(strings.TrimPrefix(text, "*.")); err != nil || text == pattern {
		return ""
	}
	return text
}

// PermitsName reports whether the policy permits a host by its name. Addresses are not permitted by this.
func (p Policy) PermitsName(name string) bool {
	r, err := p.compile()
	if err != nil {
		return false
	}
	h, err := parseHost(name)
	return err == nil && h.name != "" && r.permitsName(h.name)
}

func (r *rules) permitsName(name string) bool {
	if r.everything || r.names[name] {
		return true
	}
	for i := strings.IndexByte(name, '.'); i >= 0; {
		name = name[i+1:]
		if r.parents[name] {
			return true
		}
		i = strings.IndexByte(name, '.')
	}
	return false
}

func (r *rules) permitsPort(port uint16) bool {
	return r.anyPort || slices.Contains(r.ports, int(port))
}
