// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/event"
)

// asked is the body of a request to the model without what is never the same twice.
func asked(t testing.TB, r *script.Request) string {
	t.Helper()
	var body map[string]json.RawMessage
	if err := json.Unmarshal(r.Body, &body); err != nil {
		t.Fatal(err)
	}
	delete(body, "metadata")
	text, err := json.MarshalIndent(body, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return unique.ReplaceAllString(string(text), "*")
}

var unique = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|cc_version=[0-9.a-f]+|cch=[0-9a-f]+`)

// notice is the CLI's message to the model about the command that it was given.
var notice = regexp.MustCompile(`(?s) {4}\{\n     "type": "text",\n     "text": "\\u003c(local-)?command-(caveat|name|stdout).*?\n    \},\n`)

// A hesitantStore takes its time for the first lines of a session.
type hesitantStore struct {
	*transcript.FileStore
	seen sync.Map
}

func (s *hesitantStore) Append(ctx context.Context, key transcript.Key, entries []json.RawMessage) error {
	if _, seen := s.seen.LoadOrStore(key.SessionID, true); !seen {
		time.Sleep(100 * time.Millisecond)
	}
	return s.FileStore.Append(ctx, key, entries)
}

// After a reset the model is asked as it would be by a process of its own, but for the notice that there was a
// reset: no earlier message is left. The tokens, the counts and the budget distinguish the conversations. The first
// one is free for another run, the second is not.
func TestReset_BeginsAnEmptyConversation(t *testing.T) {
	for name, newCLI := range eachCLI {
		t.Run(name, func(t *testing.T) {
			cli := newCLI(t)
			model := claudetest.NewModel(t,
				script.Reply(bash("echo marzipan > note.txt")), script.Text("Noted: marzipan.").Metered(script.Usage{Input: 1000, Output: 100}),
				script.Text("Which word?").Metered(script.Usage{Input: 50, Output: 5}).Always())
			base := cli.Options(model)
			base.PermissionMode = claude.ModeBypassPermissions
			files, err := transcript.NewFileStore(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer files.Close()
			store := &hesitantStore{FileStore: files}
			base.Store, base.StoreEager = store, true
			a := newAdapter(t, base)
			c := open(t, a, agent.Request{}).(agent.Resetter)
			first := record(t, c.Send(inTime(t), "remember marzipan")).done(t)
			if err := c.Reset(inTime(t)); err != nil {
				t.Fatal(err)
			}
			unlock, err := store.Lock(t.Context(), transcript.Key{ProjectKey: transcript.ProjectKey(base.Dir), SessionID: first.ResumeToken})
			if err != nil {
				t.Fatalf("after the reset the first conversation is not free: %v", err)
			}
			if err := unlock(); err != nil {
				t.Fatal(err)
			}
			got := record(t, c.Send(inTime(t), "which word was it?"))
			second := got.done(t)
			if model.LastRequest().SawText("marzipan") {
				t.Error("the model sees earlier messages")
			}
			if second.ResumeToken == "" || second.ResumeToken == first.ResumeToken || got[0].SessionID != second.ResumeToken {
				t.Errorf("the tokens are %q and %q", first.ResumeToken, second.ResumeToken)
			}
			if second.Usage.InputTokens() != 50 || gatewayUsage(t, got).Total.AllInput() != 50 {
				t.Errorf("the second conversation used %+v, by the gateway %+v", second.Usage, gatewayUsage(t, got).Total)
			}
			reset := asked(t, model.LastRequest())
			record(t, a.Run(inTime(t), agent.Request{Prompt: "which word was it?"}))
			fresh := asked(t, model.LastRequest())
			if diff := cmp.Diff(fresh, notice.ReplaceAllString(reset, "")); diff != "" {
				t.Errorf("the model is asked otherwise than by a new process (-new +reset):\n%s", diff)
			}
			goOn := func(token string, saw bool) {
				t.Helper()
				record(t, a.Run(inTime(t), agent.Request{Prompt: "and now?", Resume: token}))
				if got := model.LastRequest().SawText("marzipan"); got != saw {
					t.Errorf("the conversation %s goes on with marzipan: %t, want %t", token, got, saw)
				}
			}
			goOn(first.ResumeToken, true)
			if _, err := a.Open(inTime(t), agent.Request{Resume: second.ResumeToken}); !errors.Is(err, transcript.ErrInUse) {
				t.Errorf("another run goes on with the conversation that is open: %v, want ErrInUse", err)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			goOn(second.ResumeToken, false)
		})
	}
}

// A conversation with something that would outlive it refuses to be reset.
func TestReset_IsRefusedWhereStateWouldRemain(t *testing.T) {
	t.Run("a task in the background", func(t *testing.T) {
		cli := claudetest.CLI(t)
		call := script.ToolCall{Name: "Bash", Input: script.Input{"command": "tail -f /dev/null", "description": "Wait", "run_in_background": true}}
		base := cli.Options(claudetest.NewModel(t, script.Reply(call), script.Text("It runs.").Always()))
		base.PermissionMode = claude.ModeBypassPermissions
		c := open(t, newAdapter(t, base), agent.Request{}).(agent.Resetter)
		record(t, c.Send(inTime(t), "go"))
		if err := c.Reset(inTime(t)); err == nil || !strings.Contains(advice.Text(err), "background") {
			t.Errorf("the reset gives %v", err)
		}
		if done := record(t, c.Send(inTime(t), "go on")).done(t); done.Status != event.DoneSuccess {
			t.Errorf("the conversation cannot go on: %+v", done)
		}
	})
	t.Run("a rule", func(t *testing.T) {
		cli := claudetest.CLI(t)
		base := cli.Options(claudetest.NewModel(t, script.Reply(fetch()), script.Text("Done.")))
		base.CanUseTool = func(context.Context, *claude.PermissionRequest) (claude.PermissionResult, error) {
			rule := claude.PermissionUpdate{Type: claude.AddRules, Rules: []claude.PermissionRule{{ToolName: "WebFetch"}}, Behavior: claude.RuleAllow, Destination: claude.ToSession}
			return claude.Allow{UpdatedPermissions: []claude.PermissionUpdate{rule}}, nil
		}
		c := open(t, newAdapter(t, base), agent.Request{}).(agent.Resetter)
		record(t, c.Send(inTime(t), "go"))
		if err := c.Reset(inTime(t)); err == nil || !strings.Contains(advice.Text(err), "permission rules") {
			t.Errorf("the reset gives %v", err)
		}
	})
}
