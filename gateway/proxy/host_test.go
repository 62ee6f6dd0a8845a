// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/drover-agents/drover/internal/testkit"
)

func TestTarget_HasOneSpelling(t *testing.T) {
	tests := []struct {
		text, want string // empty: refused
	}{
		{"example.org:443", "example.org:443"},
		{"EXAMPLE.Org.:443", "example.org:443"},
		{"example.org", "example.org:80"},
		{"a_b.example.org:1", "a_b.example.org:1"},
		{"93.184.216.34:80", "93.184.216.34:80"},
		{"127.0.0.1.:80", "127.0.0.1:80"},
		{"[2606:4700:0:0::1]:443", "[2606:4700::1]:443"},
		{"[::1]", "[::1]:80"},
		{"BÜCHER.example:80", "xn--bcher-kva.example:80"},
		{"１２７.0.0.1:80", "127.0.0.1:80"},
		{"①.example:80", "1.example:80"},
		{"STRASSE.ÉÉ.example:80", "strasse.xn--9caa.example:80"},
		{"İ.example:80", "xn--i-9bb.example:80"}, // a dotted capital I is not "i"
		{"a\u034fb.example:80", "ab.example:80"}, // characters that are never seen are left out
		{"a\u00adü.example:80", "xn--a-eha.example:80"},
		{strings.Repeat("ü", 57) + ".example:80", "xn--td" + strings.Repeat("a", 57) + ".example:80"},

		{"", ""},
		{":80", ""},
		{".:80", ""},
		{"example.org..:80", ""},
		{".example.org:80", ""},
		{"example.org:", ""},
		{"example.org:0", ""},
		{"example.org:65536", ""},
		{"example.org:+80", ""},
		{"example.org:080808", ""},
		{"example.org:80:80", ""},
		{"example.org: 80", ""},
		{"example.org:http", ""},
		{"user@example.org:80", ""},
		{"user:pw@example.org:80", ""},
		{"good.org@evil.org", ""},
		{"good.org#evil.org", ""},
		{"good.org/evil.org:80", ""},
		{"good.org\\evil.org:80", ""},
		{"good.org\x00.evil.org:80", ""},
		{"good.org\r\nHost: evil.org:80", ""},
		{"good org:80", ""},
		{"%6c%6fcalhost:80", ""},
		{"127.1:80", ""},
		{"127.0.1:80", ""},
		{"2130706433:80", ""},
		{"0x7f.1:80", ""},
		{"0x7f000001:80", ""},
		{"0X7F.0.0.0x1:80", ""},
		{"0x:80", ""},
		{"0177.0.0.1:80", ""},
		{"127.0.0.01:80", ""},
		{"127.0.0.256:80", ""},
		{"1.2.3.4.5:80", ""},
		{"foo.0x10:80", ""},
		{"foo.1:80", ""},
		{"127.0.0.1..:80", ""},
		{"[127.0.0.1]:80", ""},
		{"[::ffff:127.0.0.1]:80", ""},
		{"[::ffff:7f00:1]:80", ""},
		{"[fe80::1%25eth0]:80", ""},
		{"[fe80::1%eth0]:80", ""},
		{"[::1:80", ""},
		{"[::1]80", ""},
		{"[::1]:80]:80", ""},
		{"[[::1]]:80", ""},
		{"::1:80", ""},
		{"2606:4700::1", ""},
		{"[example.org]:80", ""},
		{"a。b:80", ""},
		{"a．b:80", ""},
		{"a｡b:80", ""},
		{"ü。:80", ""},
		{"ü..example:80", ""},
		{".ü:80", ""},
		{"\u00ad.example:80", ""},
		{strings.Repeat("ü", 58) + ".example:80", ""},
		{strings.Repeat("ü.", 40) + "example:80", ""},
		{"aאz.org:80", ""},
		{"\u0300.org:80", ""},
		{"-ü.org:80", ""},
		{"ü_.org:80", ""},
		{"\u1e9e.org:80", ""},
		{"\u03c2.org:80", ""},
		{"a\u200cb.org:80", ""},
		{"\ufffd.org:80", ""},
		{"℀.org:80", ""},
		{"fa\u00dfbar.org:80", ""},
		{"a\u200db.org:80", ""},
		{"a\u202eb.org:80", ""},
		{"xn--ü.org:80", ""},
		{"\xff.org:80", ""},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			got := ""
			if parsed, err := parseTarget(tt.text, 80); err == nil {
				got = parsed.String()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// FuzzTarget asks for any target, with any answer of the resolver, under a policy that permits much.
// Whatever is dialled must be an address that the policy permits, by rules that are written down here
// a second time, in other words.
func FuzzTarget(f *testing.F) {
	for _, text := range []string{
		"example.org:443", "sub.example.org.:80", "0x7f.1:80", "2130706433:80", "[::ffff:127.0.0.1]:80",
		"10.1.2.3:80", "localhost:80", "u@localhost:80", "%6cocalhost:80", "[::1]:80", "93.184.216.34:80", "１２７.1:80",
	} {
		f.Add(text, []byte{93, 184, 216, 34}, true)
		f.Add(text, []byte{127, 0, 0, 1}, false)
	}
	f.Add("example.org:443", []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}, false)
	var dialled []netip.AddrPort
	var answer []netip.Addr
	options := &Options{
		Resolve: func(context.Context, string) ([]netip.Addr, error) { return answer, nil },
		Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
			dialled = append(dialled, netip.MustParseAddrPort(addr))
			return nil, net.ErrClosed
		},
	}
	proxies := map[bool]*Proxy{}
	for _, wide := range []bool{false, true} {
		p, err := New(Policy{Domains: []string{"example.org", "*.example.org", "10.1.2.3"}, Ports: []int{80, 443}, Localhost: wide}, options)
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { p.Close() })
		p.rules.everything = wide
		proxies[wide] = p
	}
	f.Fuzz(func(t *testing.T, text string, octets []byte, wide bool) {
		dialled, answer = nil, addressesOf(octets)
		parsed, err := parseTarget(text, 80)
		if err != nil {
			return
		}
		p := proxies[wide]
		p.attempt(ProtocolConnect, text, 0).open(t.Context(), parsed)
		for _, addr := range dialled {
			if problem := whyForbidden(parsed, addr, answer, wide); problem != "" {
				t.Errorf("%q with the answer %v: dialled %v, %s", text, answer, addr, problem)
			}
		}
	})
}

// addressesOf cuts bytes into addresses of both kinds.
func addressesOf(octets []byte) []netip.Addr {
	var addrs []netip.Addr
	for len(octets) >= 4 {
		size := 4
		if len(octets) >= 16 {
			size = 16
		}
		addr, _ := netip.AddrFromSlice(octets[:size])
		addrs, octets = append(addrs, addr), octets[size:]
	}
	return addrs
}

// whyForbidden judges an address that was dialled without any code of this package.
func whyForbidden(asked target, dialled netip.AddrPort, answer []netip.Addr, wide bool) string {
	ip := net.IP(dialled.Addr().AsSlice())
	switch {
	case dialled.Port() != 80 && dialled.Port() != 443:
		return "a port that is not permitted"
	case dialled.Addr().String() == "10.1.2.3":
		if asked.name != "" {
			return "by a name"
		}
		return ""
	case ip.IsLoopback():
		if wide && (asked.name == "localhost" || asked.addr == dialled.Addr()) && (ip.String() == "127.0.0.1" || ip.String() == "::1") {
			return ""
		}
		return "loopback"
	case !ip.IsGlobalUnicast() || ip.IsPrivate():
		return "not a public address"
	case ip.To4() == nil && binary.BigEndian.Uint16(ip)>>13 != 1:
		return "outside of the public addresses of IPv6"
	case ip.To4() == nil && (ip[0] == 0x20 && ip[1] == 0x02 || binary.BigEndian.Uint32(ip) == 0x20010000):
		return "an IPv4 address in disguise"
	case ip.To4() != nil && (ip.To4()[0] == 0 || ip.To4()[0] >= 240 || ip.To4()[0] == 100 && ip.To4()[1]>>6 == 1):
		return "a reserved address"
	}
	if asked.name == "" {
		if !wide || asked.addr != dialled.Addr() {
			return "an address that is not listed"
		}
		return ""
	}
	if !wide && asked.name != "example.org" && !strings.HasSuffix(asked.name, ".example.org") {
		return "a name that is not listed"
	}
	for _, addr := range answer {
		if addr.Unmap() == dialled.Addr() {
			return ""
		}
	}
	return "an address that no lookup answered"
}

// net/http asks a proxy for international hosts in ASCII.
func TestHost_PunycodeAgreesWithNetHTTP(t *testing.T) {
	alphabet := []rune("abcxyz019-äöüéñøłžбгджяαβγδω中文字日本語한국어עבריתहिन्दीไทย𐐨İŀᎠ\u034f\u00ad")
	rapid.Check(t, func(t *rapid.T) {
		label := "a" + rapid.StringOfN(rapid.SampledFrom(alphabet), 1, 12, -1).Draw(t, "label") + "z"
		want := dialledByNetHTTP(label + ".org")
		if !isASCII(want) {
			t.Skip("net/http does not take it")
		}
		got, err := asciiName(label + ".org")
		if err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", label, got, err, want)
		}
	})
}

func dialledByNetHTTP(host string) (name string) {
	client := http.Client{Transport: &http.Transport{DialContext: func(_ context.Context, _, addr string) (net.Conn, error) {
		name, _, _ = net.SplitHostPort(addr)
		return nil, net.ErrClosed
	}}}
	_, _ = client.Get("http://" + host + "/")
	return name
}

func TestHost_PublicAddresses(t *testing.T) {
	tests := []struct {
		addr, want string
	}{
		{"93.184.216.34", ""},
		{"1.1.1.1", ""},
		{"9.255.255.255", ""},
		{"11.0.0.0", ""},
		{"100.63.255.255", ""},
		{"100.128.0.0", ""},
		{"172.15.255.255", ""},
		{"172.32.0.0", ""},
		{"223.255.255.255", ""},
		{"2606:4700::1111", ""},
		{"2001:4860:4860::8888", ""},

		{"0.0.0.0", "unspecified"},
		{"0.1.2.3", "this network"},
		{"10.0.0.0", "private"},
		{"10.255.255.255", "private"},
		{"100.64.0.0", "carrier"},
		{"100.127.255.255", "carrier"},
		{"127.0.0.1", "loopback"},
		{"127.255.255.255", "loopback"},
		{"169.254.169.254", "link-local"},
		{"172.16.0.0", "private"},
		{"172.31.255.255", "private"},
		{"192.0.0.1", "protocols"},
		{"192.0.2.1", "documentation"},
		{"192.88.99.1", "6to4"},
		{"192.168.0.1", "private"},
		{"198.18.0.1", "benchmarks"},
		{"198.19.255.255", "benchmarks"},
		{"198.51.100.1", "documentation"},
		{"203.0.113.1", "documentation"},
		{"224.0.0.1", "multicast"},
		{"239.255.255.255", "multicast"},
		{"240.0.0.1", "reserved"},
		{"255.255.255.255", "broadcast"},
		{"::", "unspecified"},
		{"::1", "loopback"},
		{"::7f00:1", "IPv4-compatible"},
		{"::ffff:8.8.8.8", "IPv4-mapped"},
		{"::ffff:0:8.8.8.8", "reserved"},
		{"64:ff9b::a00:1", "NAT64"},
		{"64:ff9b:1::a00:1", "NAT64"},
		{"100::1", "reserved"},
		{"2001::1", "Teredo"},
		{"2001:2::1", "protocols"},
		{"2001:db8::1", "documentation"},
		{"2002:7f00:1::", "6to4"},
		{"3fff::1", "documentation"},
		{"5f00::1", "reserved"},
		{"fc00::1", "private"},
		{"fdff::1", "private"},
		{"fe80::1", "link-local"},
		{"fec0::1", "site-local"},
		{"ff02::1", "multicast"},
		{"2606:4700::1111%eth0", "zone"},
	}
	for _, tt := range tests {
		got := notPublic(netip.MustParseAddr(tt.addr))
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.addr, got, tt.want)
		}
	}
	if notPublic(netip.Addr{}) == "" {
		t.Error("no address is public")
	}
}

// FuzzConnection sends any bytes to the proxy, whatever protocol they begin. Only what is listed may
// be dialled.
func FuzzConnection(f *testing.F) {
	f.Add([]byte("CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n"))
	f.Add([]byte("GET http://example.org/ HTTP/1.1\r\nHost: localhost\r\n\r\nGET http://localhost/ HTTP/1.1\r\nHost: x\r\n\r\n"))
	f.Add([]byte("\x05\x01\x00" + socks5Request(1, "example.org", 443)))
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50"))
	f.Add([]byte("\x04\x01\x01\xbb\x00\x00\x00\x01me\x00example.org\x00"))
	f.Add([]byte("\x04\x01\x01\xbb\x7f\x00\x00\x01me\x00"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		dialled := make(chan string, 1000)
		p, err := New(Policy{Domains: []string{"example.org"}}, &Options{
			Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
				if host != "example.org" {
					t.Errorf("looked up %q", host)
				}
				return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
			},
			Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
				dialled <- addr
				return nil, net.ErrClosed
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		client, server := net.Pipe()
		p.take(server)
		go io.Copy(io.Discard, client)
		client.Write(sent)
		client.Close()
		p.Close()
		close(dialled)
		for addr := range dialled {
			if !strings.HasPrefix(addr, "93.184.216.34:") {
				t.Errorf("dialled %s", addr)
			}
		}
	})
}
