// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
)

// A run with control characters in all that an agent writes shows none of them to a terminal. A file gets the patch as it is.
func TestRuns_NoControlCharactersReachATerminal(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	const evil = "\x1b[31mred\x1b]0;title\x07 \u202egnp \u009b31m"
	quoted, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	id := keptRun(t, "reviewer", "Look at "+evil, agenttest.Emit(event.Init{Model: evil, Tools: []string{evil}}, shellCall("c1", evil),
		event.Decision{CallID: "c1", Tool: evil, Verdict: event.Deny, Policy: evil, Reason: evil, Chain: []event.PolicyVerdict{{Policy: evil, Reason: evil}}},
		event.ToolResult{ID: "c1", Name: "Bash", Status: event.ToolDenied, Output: quoted, Failure: &event.ToolFailure{Message: evil}},
		event.Error{Code: evil, Message: evil}, event.Text{Content: evil}), agenttest.Done(evil))
	run, err := findRun(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(run.Path, "workspace.diff"), []byte("+"+evil+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := mustCommand(t, 0, "runs", "show", id, "--diff"); out != "+"+evil+"\n" {
		t.Errorf("a file gets the patch %q", out)
	}
	keyboard, screen := openTerminal(t, 100)
	const end = "the last line"
	for _, args := range [][]string{
		{"show", id},
		{"show", id, "--events"},
		{"show", id, "--transcript"},
		{"show", id, "--diff"},
		{"show", id, "--cost"},
		{"show", id, "--prompt"},
		{"show", id, "--session"},
		{"show", id, "--decisions"},
		{"compare", id, id},
		{"cost", "--by", "model"},
		{},
		{"--json"},
		{"sql", "select payload from events"},
		{"sql", "--json", "select payload from events"},
	} {
		shown := make(chan string)
		go func() {
			var all strings.Builder
			for b := make([]byte, 4096); !strings.Contains(all.String(), end); {
				n, err := keyboard.Read(b)
				all.Write(b[:n])
				if err != nil {
					break
				}
			}
			shown <- all.String()
		}()
		cmd := newCommand()
		cmd.SetArgs(append([]string{"runs"}, args...))
		cmd.SetOut(screen)
		cmd.SetErr(screen)
		if code := execute(t.Context(), cmd); code != 0 {
			t.Errorf("runs %q: exit code %d", args, code)
		}
		if _, err := io.WriteString(screen, end); err != nil {
			t.Fatal(err)
		}
		select {
		case text := <-shown:
			if strings.ContainsAny(text, "\x1b\a\u202e\u009b") {
				t.Errorf("runs %q shows %q", args, text)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("runs %q: the terminal has not shown all", args)
		}
	}
}
