// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-agents/drover/tool"
)

func TestParseMCPName_Parts(t *testing.T) {
	for _, c := range []struct {
		name    string
		servers []string
		want    tool.MCPName
		ok      bool
	}{
		{"mcp__desk__save", nil, tool.MCPName{Server: "desk", Tool: "save"}, true},
		{" mcp__desk__save ", nil, tool.MCPName{Server: "desk", Tool: "save"}, true},
		{"mcp__my.desk__save", nil, tool.MCPName{Server: "my_desk", Tool: "save"}, true},
		{"mcp__desk", nil, tool.MCPName{Server: "desk"}, true},
		{"mcp__desk__*", nil, tool.MCPName{Server: "desk"}, true},
		{"mcp__a__b__c", nil, tool.MCPName{Server: "a", Tool: "b__c"}, true},
		{"mcp__a__b__c", []string{"x", "a__b"}, tool.MCPName{Server: "a__b", Tool: "c"}, true},
		{"mcp__a__b__c", []string{"a", "a__b"}, tool.MCPName{Server: "a", Tool: "b__c"}, true},
		{"mcp__my_desk__save", []string{"my.desk"}, tool.MCPName{Server: "my_desk", Tool: "save"}, true},
		{"mcp__desktop__save", []string{"desk"}, tool.MCPName{Server: "desktop", Tool: "save"}, true},
		{"Bash", nil, tool.MCPName{}, false},
		{"mcp_desk__save", nil, tool.MCPName{}, false},
		{"mcp__", nil, tool.MCPName{}, true},
		{"mcp__desk__default:save", []string{"desk"}, tool.MCPName{Server: "desk", Tool: "default:save"}, true},
		{"desk__save", []string{"desk"}, tool.MCPName{}, false},
	} {
		if got, ok := tool.ParseMCPName(c.name, c.servers...); ok != c.ok || ok && got != c.want {
			t.Errorf("ParseMCPName(%q, %q) = %+v, %t; want %+v, %t", c.name, c.servers, got, ok, c.want, c.ok)
		}
	}
}

// A name is read as the server that has it, whatever the server is called.
func TestMCPName_IsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		server := rapid.StringN(1, 12, -1).Draw(t, "server")
		want := tool.NewMCPName(server, rapid.StringMatching(`[a-z_-]{0,3}[a-z0-9]`).Draw(t, "tool"))
		if got, ok := tool.ParseMCPName(want.String(), server); !ok || got != want {
			t.Fatalf("%s is read as %+v, want %+v", want, got, want)
		}
	})
}

func TestShortName_Cases(t *testing.T) {
	for _, x := range []struct {
		name, want string
		ours       bool
	}{
		{"Bash", "Bash", false},
		{"mcp__drover__deploy", "deploy", true},
		{"mcp__wink__deploy", "deploy", true},
		{"mcp__files__read", "files: read", false},
		{"mcp__files", "files", false},
	} {
		if got, ours := tool.ShortName(x.name); got != x.want || ours != x.ours {
			t.Errorf("%s: %q, ours %t, want %q, %t", x.name, got, ours, x.want, x.ours)
		}
	}
}
