// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/gateway/proxy"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/isolation/internal/jail"
)

func TestRelay_ToolsReachTheProxyOfTheCaller(t *testing.T) {
	if err := jail.Supported(t.Context(), ""); err != nil {
		t.Skip(err)
	}
	cli, own, gone := claudetest.CLI(t), ownProxy(t), freePort(t)
	var unusedPort int
	if _, err := fmt.Sscan(gone, &unusedPort); err != nil {
		t.Fatal(err)
	}
	i := &isolation.Isolation{Network: &isolation.NetworkPolicy{HTTPProxyPort: own.port, SOCKSProxyPort: unusedPort}}
	events := playIn(t, cli, i, []try{
		{"asked", "Bash", command("curl -sS -m 10 http://any.example/x"), "your proxy was asked for http://any.example/x", "", false},
		{"again", "Bash", command("curl -sS -m 10 http://127.0.0.9/y"), "your proxy was asked for http://127.0.0.9/y", "", false},
		{"no-proxy", "Bash", command("curl -sS -m 10 --noproxy '' --proxy $ALL_PROXY http://any.example/ && echo answered; true"), "curl", "answered", false},
		// The proxy is all that there is of the host's loopback.
		{"loopback", "Bash", command("curl -sS -m 10 --noproxy '*' http://127.0.0.1:" + tcpServer(t) + " && echo answered; true"), "curl", "answered", false},
	})
	if enforced := strings.Join(oneProtection(t, events, cell).Enforced, "\n"); !strings.Contains(enforced, "what your proxy lets through") || !strings.Contains(enforced, "memory: ") {
		t.Errorf("enforced: %q, want the proxy of the caller's, and who keeps the memory", enforced)
	}
	verdicts := map[proxy.Verdict]int{}
	for _, c := range of[proxy.Connection](events) {
		verdicts[c.Verdict]++
		if c.Host != "127.0.0.1" || c.Verdict == proxy.Allowed && (c.Port != own.port || c.BytesUp == 0 || c.BytesDown == 0) || c.Verdict == proxy.Failed && (c.Port != unusedPort || c.Reason == "") {
			t.Errorf("reported %+v", c)
		}
	}
	if verdicts[proxy.Allowed] != 2 || verdicts[proxy.Failed] != 1 {
		t.Errorf("reported %v, want two allowed and one failed", verdicts)
	}
}
