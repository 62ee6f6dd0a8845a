// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/tool"
)

// A registry knows of its servers which tools they leave out, also of those added later.
func TestRegistry_KnowsWithheldTools(t *testing.T) {
	builtin := &tool.Tool{Name: "builtin", Description: "is served by another program"}
	r := tool.MustRegistry(nil, named("a"), named("b"), builtin)
	check := func(when string, want []string) {
		t.Helper()
		if diff := cmp.Diff(want, r.Withheld("a", "b", "later", "builtin", "unknown")); diff != "" {
			t.Errorf("%s: withheld (-want +got):\n%s", when, diff)
		}
	}
	r.Watch(func() {})
	check("without a server", nil)
	only := func(t *tool.Tool) bool { return t.Name == "a" }
	server, err := claudecode.NewSDKServer(r, &claudecode.SDKServerOptions{SDKToolOptions: claudecode.SDKToolOptions{Only: only}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Add(named("later")); err != nil {
		t.Fatal(err)
	}
	check("with a server of one tool", []string{"b", "later"})
	server.Close()
	check("after the server was closed", nil)
}
