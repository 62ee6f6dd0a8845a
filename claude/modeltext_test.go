// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// The golden files of MCP and the tests of hooks and permissions show the other texts.
func TestModelText_OfCallsThatAreNotServed(t *testing.T) {
	c := newFakeClient(nil)
	c.mux = newMCPMux(map[string]*MCPInProcess{"late": {}}, nil)
	ask := func() string {
		return string(c.mux.begin(t.Context(), "late", json.RawMessage(rpcCall("1", "x", "{}"))).run())
	}
	notAttached := ask()
	if err := c.mux.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	permission := c.prepare(t.Context(), cliRequest{Subtype: "can_use_tool"}).safe()
	tool := c.prepare(t.Context(), cliRequest{Subtype: "mcp_message", Body: json.RawMessage(`{"server_name":"late","message":{}}`)}).safe()
	for _, text := range []struct{ got, want string }{
		{notAttached, fmt.Sprintf(serverNotAttached, "late")},
		{ask(), fmt.Sprintf(serverClosing, "late")},
		{permission.err, permissionFailed},
		{tool.err, toolNotReturned},
		{string((&Hook{Event: HookPreToolUse}).safeAnswer()), fmt.Sprintf(hookFailed, HookPreToolUse)},
	} {
		if want := strings.ReplaceAll(text.want, `"`, `\"`); !strings.Contains(text.got, want) {
			t.Errorf("got %s, want %s", text.got, want)
		}
	}
}
