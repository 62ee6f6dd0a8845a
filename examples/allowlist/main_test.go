// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/isolation"
)

func TestMain(m *testing.M) { claudetest.Main(m) }

func TestAllowlist_OnlyListedHostsAreReached(t *testing.T) {
	if best, reasons := isolation.Best(t.Context()); best != isolation.LevelCell {
		t.Skipf("needs a cell: %v", reasons)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "version 7") }))
	defer server.Close()
	model := claudetest.NewModel(t,
		script.Call("Bash", script.Input{"command": "curl -s -m 5 " + server.URL + "; curl -s -m 5 http://evil.example/"}),
		script.Text("It is version 7."),
	).RequireAllUsed()
	var out strings.Builder
	if err := run(t.Context(), &out, claudetest.CLI(t).Options(model), "Which version is it?", "docs.example"); err != nil {
		t.Fatal(err)
	}
	want := "127.0.0.1: allowed\nevil.example: denied\nIt is version 7.\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("allowlist printed (-want +got):\n%s", diff)
	}
	if got, _, _ := model.ToolResult("Bash"); !strings.Contains(got, "version 7") {
		t.Errorf("the command read %q, want the answer of the server on loopback", got)
	}
	if !model.SawText("Answer from the documentation: Which version is it?") {
		t.Error("the model has not read the question")
	}
}
