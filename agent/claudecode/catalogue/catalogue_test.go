// SPDX-License-Identifier: Apache-2.0

package catalogue_test

import (
	"testing"

	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/tool"
)

func TestCatalogue_HasTheMainTools(t *testing.T) {
	const harmful = tool.Mutates | tool.Dangerous
	for name, want := range map[string]tool.Native{
		"Write":        {Risk: tool.Mutates, Needs: tool.FileWrite},
		"Edit":         {Risk: tool.Mutates, Needs: tool.FileWrite},
		"MultiEdit":    {Risk: tool.Mutates, Needs: tool.FileWrite},
		"NotebookEdit": {Risk: tool.Mutates, Needs: tool.FileWrite},
		"Replace":      {Risk: tool.Mutates, Needs: tool.FileWrite},
		"Bash":         {Risk: harmful, Needs: tool.ShellExecute},
		"PowerShell":   {Risk: harmful, Needs: tool.ShellExecute},
		"Monitor":      {Risk: harmful, Needs: tool.ShellExecute | tool.NetworkAccess},
		"Skill":        {Risk: harmful, Needs: tool.ShellExecute},
		"SlashCommand": {Risk: harmful, Needs: tool.ShellExecute},
		"WebFetch":     {Risk: tool.ReadOnly, Needs: tool.NetworkAccess},
		"WebSearch":    {Risk: tool.ReadOnly, Needs: tool.NetworkAccess},
		"Read":         {Risk: tool.ReadOnly},
		"View":         {Risk: tool.ReadOnly},
		"GlobTool":     {Risk: tool.ReadOnly},
		"Grep":         {Risk: tool.ReadOnly},
		"LS":           {Risk: tool.ReadOnly},
		"KillShell":    {Risk: tool.ReadOnly},
		"Task":         {Risk: tool.ReadOnly},
		"Agent":        {Risk: tool.ReadOnly},
	} {
		if got, ok := catalogue.Tools().Native(name); !ok || got.Name != name || got.Risk != want.Risk || got.Needs != want.Needs {
			t.Errorf("Native(%s) = %+v, %t; want %+v", name, got, ok, want)
		}
	}
	for _, name := range []string{"", "bash", "WriteConfig", "mcp__files__Write", "Bash(ls)"} {
		if got, ok := catalogue.Tools().Native(name); ok {
			t.Errorf("Native(%s) = %+v, want nothing", name, got)
		}
	}
}

func TestCatalogue_IsConsistent(t *testing.T) {
	for i, n := range catalogue.Tools().Natives {
		if n.Risk.Has(tool.ReadOnly) == n.Risk.Has(tool.Mutates) {
			t.Errorf("%s: %s; a tool of the agent either changes something or does not", n.Name, n.Risk)
		}
		if n.Risk.Has(tool.ReadOnly) && (n.Needs.Has(tool.FileWrite) || n.Needs.Has(tool.ShellExecute)) {
			t.Errorf("%s needs %s and is read-only", n.Name, n.Needs)
		}
		if n.Files == tool.WritesFile && !n.Needs.Has(tool.FileWrite) || n.Command != "" && !n.Needs.Has(tool.ShellExecute) {
			t.Errorf("%s needs only %s", n.Name, n.Needs)
		}
		if got, ok := catalogue.Tools().Native(n.Name); !ok || got != &catalogue.Tools().Natives[i] {
			t.Errorf("%s is there twice", n.Name)
		}
	}
}

func TestNative_DoesNotAllocate(t *testing.T) {
	if got := testing.AllocsPerRun(100, func() { catalogue.Tools().Native("Bash"); catalogue.Tools().Native("Frob") }); got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}
