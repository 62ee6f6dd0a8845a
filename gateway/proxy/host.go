// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Names have at most 253 characters, their labels 63.
const (
	maxName  = 253
	maxLabel = 63
)

// A host is what a client asks for, in the one spelling that is compared, looked up and written on: either an address, or a
// name in lower-case ASCII without a final dot that no resolver takes for an address.
type host struct {
	addr netip.Addr
	name string
}

func (h host) String() string {
	if h.addr.IsValid() {
		return h.addr.String()
	}
	return h.name
}

// isLocalhost reports whether h is one of the spellings that Policy.Localhost is about.
func (h host) isLocalhost() bool {
	return h.name == "localhost" || h.addr == loopback4 || h.addr == netip.IPv6Loopback()
}

var loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})

type target struct {
	host
	port uint16
}

// String is host:port as it is dialled and written on, IPv6 addresses in brackets.
func (t target) String() string { return t.header(0) }

// header is the value of a Host header, which leaves the usual port out.
func (t target) header(usual uint16) string {
	text := t.host.String()
	if t.addr.Is6() {
		text = "[" + text + "]"
	}
	if t.port == usual {
		return text
	}
	return text + ":" + strconv.Itoa(int(t.port))
}

// parseTarget reads "host:port"; usual is the port of a text without one, and zero demands one.
func parseTarget(text string, usual uint16) (target, error) {
	hostText, portText, err := splitTarget(text)
	if err != nil {
		return target{}, err
	}
	h, err := parseHost(hostText)
	if err != nil {
		return target{}, err
	}
	if strings.HasPrefix(text, "[") != h.addr.Is6() {
		return target{}, errors.New("brackets are only for IPv6 addresses")
	}
	t := target{h, usual}
	if portText != "" {
		t.port, err = parsePort(portText)
	} else if usual == 0 {
		err = errors.New("there is no port")
	}
	return t, err
}

// splitTarget cuts "host:port" and "[address]:port"; brackets are taken off. The port is empty if it is missing.
func splitTarget(text string) (hostText, portText string, err error) {
	var rest string
	if inner, bracketed := strings.CutPrefix(text, "["); bracketed {
		var closed bool
		if hostText, rest, closed = strings.Cut(inner, "]"); !closed {
			return "", "", errors.New("there is no closing bracket")
		}
		if rest != "" && rest[0] != ':' {
			return "", "", errors.New("there is more than a port behind the closing bracket")
		}
	} else if i := strings.IndexByte(text, ':'); i >= 0 {
		hostText, rest = text[:i], text[i:]
	} else {
		hostText = text
	}
	if rest == ":" {
		return "", "", errors.New("there is no port behind the colon")
	}
	return hostText, strings.TrimPrefix(rest, ":"), nil
}

func parsePort(text string) (uint16, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 || len(text) > 5 {
		return 0, errors.New(textPortForm)
	}
	return uint16(port), nil
}

// parseHost brings a host to its one spelling. It refuses what could be read in more than one way.
func parseHost(text string) (host, error) {
	if strings.Contains(text, ":") {
		return parseIPv6(text)
	}
	name, err := asciiName(text)
	if err != nil {
		return host{}, err
	}
	if !endsInNumber(name) {
		return host{name: name}, nil
	}
	// Some resolvers read "127.1", "0177.0.0.1", "0x7f000001" and "2130706433" as 127.0.0.1.
	addr, err := netip.ParseAddr(name)
	if err != nil {
		return host{}, errors.New("it looks like an IPv4 address but is not written as four decimal numbers")
	}
	return host{addr: addr}, nil
}

func parseIPv6(text string) (host, error) {
	addr, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		return host{}, errors.New("it is not an IPv6 address")
	case addr.Zone() != "":
		return host{}, errors.New("addresses with a zone are not for others")
	case addr.Is4In6():
		return host{}, fmt.Errorf("write the IPv4 address %s as such", addr.Unmap())
	}
	return host{addr: addr}, nil
}

// asciiName gives a name in lower-case ASCII and without its final dot.
func asciiName(text string) (string, error) {
	if len(text) > 4*maxName {
		return "", errors.New("it is too long")
	}
	text = strings.TrimSuffix(text, ".")
	labels := strings.Split(text, ".")
	for i, label := range labels {
		var err error
		if labels[i], err = asciiLabel(label); err != nil {
			return "", err
		}
	}
	name := strings.Join(labels, ".")
	if len(name) > maxName {
		return "", errors.New("it is too long")
	}
	return name, nil
}

// toASCII gives the form in which a part of a name is looked up: "bücher" is "xn--bcher-kva". ASCII
// stays as it is. Characters that the standards of international names treat differently are refused.
func toASCII(label string) (string, error) {
	if isASCII(label) {
		return label, nil
	}
	if !utf8.ValidString(label) {
		return "", errors.New("it is not UTF-8")
	}
	if strings.ContainsAny(label, "ßẞς\u200c\u200d") {
		return "", errors.New("it has a character that not all programs write the same way in ASCII")
	}
	return idna.Lookup.ToASCII(label) // as net/http does, so that clients and policies mean the same host
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

func asciiLabel(label string) (string, error) {
	ascii, err := toASCII(label)
	if err != nil {
		return "", err
	}
	ascii = strings.ToLower(ascii)
	switch {
	case ascii == "":
		return "", errors.New("a part between dots is empty")
	case len(ascii) > maxLabel:
		return "", errors.New("a part between dots is longer than 63 characters")
	case ascii[0] == '-' || ascii[len(ascii)-1] == '-':
		return "", errors.New("a part between dots begins or ends with a hyphen")
	}
	for _, c := range []byte(ascii) {
		if !isNameByte(c) {
			return "", fmt.Errorf("%q is not allowed in a name", rune(c))
		}
	}
	return ascii, nil
}

// isNameByte allows the underscore too, which names of services have.
func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// endsInNumber reports whether a resolver could take the name for IPv4: its last part is a decimal, octal or hex number.
func endsInNumber(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if strings.Trim(last, "0123456789") == "" {
		return true
	}
	hex, is := strings.CutPrefix(last, "0x")
	return is && strings.Trim(hex, "0123456789abcdef") == ""
}
