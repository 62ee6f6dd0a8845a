// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/isolation"
)

func TestNetworkPolicy_Constructors(t *testing.T) {
	tests := []struct {
		name string
		got  *isolation.NetworkPolicy
		want isolation.NetworkPolicy
	}{
		{"NoNetwork", isolation.NoNetwork(), isolation.NetworkPolicy{}},
		{"WithDomains", isolation.WithDomains("a.example", "*.b.example"), isolation.NetworkPolicy{AllowedDomains: []string{"a.example", "*.b.example"}}},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, *test.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestNetworkPolicy_CopiesItsDomains(t *testing.T) {
	domains := []string{"a.example"}
	policy := isolation.WithDomains(domains...)
	domains[0] = "evil.example"
	if policy.AllowedDomains[0] != "a.example" {
		t.Error("the policy changed with the caller's list")
	}
}

const (
	cell     = isolation.LevelCell
	landlock = isolation.LevelLandlock
	sandbox  = isolation.LevelSandbox
	host     = isolation.LevelHost
)

func TestNetworkPolicy_UnenforceableIsRefused(t *testing.T) {
	type policy = isolation.NetworkPolicy
	tests := []struct {
		name     string
		policy   *policy
		level    isolation.Level
		goos     string
		field    string // "" means accepted
		wantText string
	}{
		{"no policy", nil, host, "linux", "", ""},
		{"domains in a cell", isolation.WithDomains("example.com", "*.example.org", "*", "10.0.0.1", "::1"), cell, "linux", "", ""},
		{"domains under Landlock", isolation.WithDomains("example.com"), landlock, "linux", "", ""},
		{"domains in the CLI's sandbox", isolation.WithDomains("example.com"), sandbox, "darwin", "", ""},
		{"domains without isolation", isolation.WithDomains("example.com"), host, "linux", "Network.AllowedDomains", "without isolation"},
		{"no network without isolation", isolation.NoNetwork(), host, "windows", "Network.AllowedDomains", "without isolation"},
		{"everything without isolation", isolation.WithDomains("*"), host, "windows", "", ""},
		{"ports without isolation", &policy{AllowedDomains: []string{"*"}, AllowedPorts: []int{443}}, host, "linux", "Network.AllowedDomains", "without isolation"},

		{"ports in a cell", &policy{AllowedPorts: []int{443}}, cell, "linux", "", ""},
		{"ports under Landlock", &policy{AllowedPorts: []int{443}}, landlock, "linux", "", ""},
		{"ports in the CLI's sandbox", &policy{AllowedPorts: []int{443}}, sandbox, "darwin", "Network.AllowedPorts", "not ports"},
		{"no port in the CLI's sandbox", &policy{AllowedPorts: []int{}}, sandbox, "linux", "Network.AllowedPorts", "not ports"},

		{"all sockets in a cell", &policy{AllowAllUnixSockets: true}, cell, "linux", "Network.AllowAllUnixSockets", "Network.UnixSockets"},
		{"all sockets under Landlock", &policy{AllowAllUnixSockets: true}, landlock, "linux", "", ""},
		{"all sockets in the CLI's sandbox", &policy{AllowAllUnixSockets: true}, sandbox, "linux", "", ""},
		{"a socket in a cell", &policy{UnixSockets: []string{"/run/x.sock"}}, cell, "linux", "", ""},
		{"a socket under Landlock", &policy{UnixSockets: []string{"/run/x.sock"}}, landlock, "linux", "Network.UnixSockets", "Landlock"},
		{"a socket in the CLI's sandbox on Linux", &policy{UnixSockets: []string{"/run/x.sock"}}, sandbox, "linux", "Network.UnixSockets", "on Linux"},
		{"a socket in the CLI's sandbox on macOS", &policy{UnixSockets: []string{"/run/x.sock"}}, sandbox, "darwin", "", ""},

		{"localhost in a cell", &policy{AllowLocalhost: true, AllowLocalBinding: true}, cell, "linux", "", ""},
		{"localhost in the CLI's sandbox", &policy{AllowLocalhost: true, AllowLocalBinding: true}, sandbox, "darwin", "", ""},

		{"an own proxy in a cell", &policy{HTTPProxyPort: 3128}, cell, "linux", "", ""},
		{"an own SOCKS proxy under Landlock", &policy{SOCKSProxyPort: 1080}, landlock, "linux", "", ""},
		{"an own proxy in the CLI's sandbox", &policy{HTTPProxyPort: 3128, SOCKSProxyPort: 1080}, sandbox, "darwin", "", ""},
		{"an own proxy and ports in a cell", &policy{SOCKSProxyPort: 1080, AllowedPorts: []int{443}}, cell, "linux", "Network.HTTPProxyPort", "would not hold"},
		{"an own proxy and domains in a cell", &policy{HTTPProxyPort: 3128, AllowedDomains: []string{"*"}}, cell, "linux", "Network.HTTPProxyPort", "would not hold"},
		{"an own proxy and domains", &policy{HTTPProxyPort: 3128, AllowedDomains: []string{"example.com"}}, sandbox, "darwin", "Network.HTTPProxyPort", "would not hold"},

		{"no host", isolation.WithDomains(""), cell, "linux", "Network.AllowedDomains", "is empty"},
		{"an address of a page", isolation.WithDomains("https://example.com/x"), cell, "linux", "Network.AllowedDomains", "not a host alone"},
		{"a star in the middle", isolation.WithDomains("a.*.example"), cell, "linux", "Network.AllowedDomains", "first part"},
		{"no such port", &policy{AllowedPorts: []int{70000}}, cell, "linux", "Network.AllowedPorts", "70000 is not a port"},
		{"no such proxy port", &policy{HTTPProxyPort: -1}, sandbox, "linux", "Network.HTTPProxyPort", "-1 is not a port"},
		{"a relative socket", &policy{UnixSockets: []string{"x.sock"}}, cell, "linux", "Network.UnixSockets", "absolute"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			checkRefused(t, test.policy.Validate(test.level, test.goos), test.field, test.wantText)
		})
	}
}

// checkRefused checks that an error names the field, has the text and says what to do; or that there is no error.
func checkRefused(t *testing.T, err error, field, wantText string) {
	t.Helper()
	if field == "" {
		if err != nil {
			t.Errorf("got %v, want it accepted", err)
		}
		return
	}
	refused, ok := errors.AsType[*isolation.RefusedError](err)
	if !ok {
		t.Fatalf("got %v, want a RefusedError", err)
	}
	if !strings.HasPrefix(refused.Field, field) || !strings.Contains(advice.Text(err), wantText) || !strings.Contains(advice.Text(err), "\n  next: ") {
		t.Errorf("got %v, want it to name %s, to say %q and what to do", err, field, wantText)
	}
}

func TestNetworkPolicy_ErrorNamesLevelAndSystem(t *testing.T) {
	err := (&isolation.NetworkPolicy{AllowedPorts: []int{}}).Validate(sandbox, "darwin")
	if !strings.Contains(advice.Text(err), "(isolation level sandbox on darwin)") {
		t.Errorf("got %v, want the level and the system", err)
	}
}
