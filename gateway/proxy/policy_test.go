// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
)

func TestPolicy_ValidateNamesTheReplacement(t *testing.T) {
	tests := []struct {
		pattern, want string
	}{
		{"http://x.org", `write "x.org"`},
		{"https://user@x.org:443/path", `write "x.org"`},
		{"x.org:443", `write "x.org"`},
		{"x.org/path", `write "x.org"`},
		{" x.org ", `write "x.org"`},
		{"[2606:4700::1]", `write "2606:4700::1"`},
		{"a b", `write a host ("example.org")`},
		{"", `write a host`},
		{".", `write a host`},
		{"a..b", `write a host`},
		{"*.*", `write "*"`},
		{"**", `write "*"`},
		{"foo*", `write a host`},
		{"*foo.org", `write "foo.org"`},
		{"**.foo.org", `write "*.foo.org"`},
		{"a.*.org", `write a host`},
		{"-a.org", "hyphen"},
		{"straße.de", "not all programs"},
		{"*.10.0.0.1", `write "10.0.0.1"`},
		{"10.0.0.0/8", "list each address"},
		{"127.1", "four decimal numbers"},
		{"0x7f000001", "four decimal numbers"},
		{"::ffff:10.0.0.1", "write the IPv4 address 10.0.0.1"},
		{"fe80::1%eth0", "zone"},
		{"localhost", "AllowLocalhost"},
		{"LOCALHOST.", "AllowLocalhost"},
		{"*.localhost", "AllowLocalhost"},
		{"127.0.0.1", "AllowLocalhost"},
		{"::1", "AllowLocalhost"},
		{"169.254.169.254", "link-local"},
		{"fe80::1", "link-local"},
		{"0.0.0.0", "unspecified"},
		{"224.0.0.1", "multicast"},
		{"2002:a00:1::", "6to4"},
		{strings.Repeat("a", 64) + ".org", "63"},
		{strings.Repeat("a.", 127) + "org", "too long"},
	}
	for _, tt := range tests {
		t.Run(tt.pattern, func(t *testing.T) {
			err := Policy{Domains: []string{"ok.org", tt.pattern}}.Validate()
			if err == nil || !strings.Contains(advice.Text(err), tt.want) || !strings.Contains(advice.Text(err), "\n  next: ") {
				t.Errorf("got %v, want a sentence with %s", err, tt.want)
			}
			if err != nil && !strings.HasPrefix(advice.Text(err), "proxy: Domains[1] ") {
				t.Errorf("got %v, want it to name Domains[1]", err)
			}
		})
	}
}

func TestPolicy_ValidateReportsEveryProblem(t *testing.T) {
	p := Policy{Domains: []string{"a b", "ok.org", "foo*"}, Ports: []int{80, 0, 65536, -1}}
	err := p.Validate()
	for _, want := range []string{"Domains[0]", "Domains[2]", "Ports[1] 0", "Ports[2] 65536", "Ports[3] -1"} {
		if err == nil || !strings.Contains(advice.Text(err), want) {
			t.Errorf("got %v, want it to name %s", err, want)
		}
	}
	if _, got := New(p, nil); got == nil || advice.Text(got) != advice.Text(err) {
		t.Errorf("New: got %v, want the same", got)
	}
}

func TestPolicy_ValidateAcceptsEnforceablePolicies(t *testing.T) {
	p := Policy{
		Domains: []string{
			"*", "example.org", "Example.ORG.", "*.example.org", "*.co.uk", "_dmarc.example.org", "bücher.org",
			"xn--bcher-kva.org", "93.184.216.34", "10.0.0.1", "100.64.0.1", "fd00::1", "2606:4700::1", "intranet",
		},
		Ports:     []int{1, 65535},
		Localhost: true,
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	if err := (Policy{}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestPolicy_PatternsPermitTheHostsTheyName(t *testing.T) {
	tests := []struct {
		pattern, host string
		want          bool
	}{
		{"example.org", "example.org", true},
		{"example.org", "EXAMPLE.org.", true},
		{"Example.Org.", "example.org", true},
		{"example.org", "www.example.org", false},
		{"example.org", "notexample.org", false},
		{"example.org", "example.org.evil.net", false},
		{"*.example.org", "www.example.org", true},
		{"*.example.org", "a.b.example.org", true},
		{"*.example.org", "example.org", false},
		{"*.example.org", "notexample.org", false},
		{"*.example.org", "www.example.org.evil.net", false},
		{"*", "anything.net", true},
		{"*", "93.184.216.34", true},
		{"*", "10.0.0.1", false},
		{"*", "127.0.0.1", false},
		{"*", "localhost", false},
		{"*", "::1", false},
		{"10.0.0.1", "10.0.0.1", true},
		{"10.0.0.1", "10.0.0.2", false},
		{"93.184.216.34", "93.184.216.34", true},
		{"93.184.216.34", "93.184.216.35", false},
		{"FD00::1", "fd00:0:0::1", true},
		{"bücher.org", "xn--bcher-kva.org", true},
		{"xn--bcher-kva.org", "BÜCHER.org", true},
		{"bücher.org", "bucher.org", false},
	}
	for _, tt := range tests {
		t.Run(tt.pattern+" "+tt.host, func(t *testing.T) {
			w := newWorld(t, Policy{Domains: []string{tt.pattern}}, nil, nil)
			h, err := parseHost(tt.host)
			if err != nil {
				t.Fatal(err)
			}
			if got := w.proxy.admitHost(h) == nil; got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
