// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace"
)

// renames is a Rewrite that replaces texts in inputs, and the inputs that it has seen.
type renames struct {
	from, to []string

	mu   sync.Mutex
	seen []string
}

func (r *renames) rewrite(_ context.Context, call event.ToolCall) (json.RawMessage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, call.Name+" "+string(call.Input))
	input := string(call.Input)
	for i := range r.from {
		input = strings.ReplaceAll(input, r.from[i], r.to[i])
	}
	return json.RawMessage(input), nil
}

// Without a host the rules of the CLI hold for the new input, in every mode: what they allow runs with it, what
// they deny does not run, and questions are about it.
func TestRewrite_DecidesNothing(t *testing.T) {
	type outcome struct {
		Read, Secret, Write event.ToolStatus
		Asked               []string
	}
	const ok, no = event.ToolSuccess, event.ToolDenied
	for mode, want := range map[claude.PermissionMode]outcome{
		claude.ModeDefault:           {ok, no, ok, []string{"w2.txt"}},
		claude.ModeAcceptEdits:       {ok, no, ok, nil},
		claude.ModeDontAsk:           {ok, no, no, nil},
		claude.ModeBypassPermissions: {ok, no, ok, nil},
	} {
		t.Run(string(mode), func(t *testing.T) {
			bothCLIs(t, func(t *testing.T, cli *claudetest.RealCLI) {
				cli.WriteFile(t, "one.txt", "ONE")
				cli.WriteFile(t, "two.txt", "TWO")
				secret := cli.WriteFile(t, "secret.txt", "SECRET")
				model := claudetest.NewModel(t,
					script.Reply(bash("mkdir sub && cd sub")),
					script.Call("Read", script.Input{"file_path": "../one.txt"}),
					script.Call("Read", script.Input{"file_path": "../three.txt"}),
					script.Reply(write(cli, "w1.txt")), script.Text("Done."))
				base := cli.Options(model)
				base.PermissionMode, base.DisallowedTools = mode, []string{"Read(/" + secret + ")"}
				var got outcome
				base.CanUseTool = func(_ context.Context, r *claude.PermissionRequest) (claude.PermissionResult, error) {
					var input struct {
						Path string `json:"file_path"`
					}
					_ = json.Unmarshal(r.Input, &input)
					if r.ToolName != "Bash" {
						got.Asked = append(got.Asked, filepath.Base(input.Path))
					}
					return claude.Allow{}, nil
				}
				r := &renames{from: []string{"one.txt", "three.txt", "w1.txt"}, to: []string{"two.txt", "secret.txt", "w2.txt"}}
				events := run(t, base, agent.Request{Prompt: "go", Hooks: &agent.Hooks{Rewrite: r.rewrite}})
				events.check(t)
				results := of[event.ToolResult](events)
				got.Read, got.Secret, got.Write = results[1].Status, results[2].Status, results[3].Status
				if got.Secret == event.ToolError && !strings.Contains(string(results[2].Output), "SECRET") {
					got.Secret = event.ToolDenied // the old CLI has other words for it in one mode
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if !strings.Contains(string(results[1].Output), "TWO") || model.SawText("SECRET") {
					t.Errorf("the model read %s, want what the new input names", results[1].Output)
				}
				if _, err := os.Stat(filepath.Join(cli.Work, "w1.txt")); err == nil {
					t.Error("the file of the old input was written")
				}
				// The path that the model gave was relative to where its shell was.
				if want := "Read " + `{"file_path":"` + filepath.Join(cli.Work, "one.txt") + `"}`; r.seen[1] != want {
					t.Errorf("Rewrite was shown %s, want %s", r.seen[1], want)
				}
			})
		})
	}
}

// A host judges the new input, and its approver is asked about the new one. An allowed call runs with it: also a
// tool of ours, which runs only what was allowed.
func TestRewrite_HostJudgesTheNewInput(t *testing.T) {
	bothCLIs(t, func(t *testing.T, cli *claudetest.RealCLI) {
		cli.WriteFile(t, "two.txt", "TWO")
		model := claudetest.NewModel(t,
			script.Call("Read", script.Input{"file_path": "one.txt"}),
			script.Reply(bash("echo old-one")),
			script.Reply(bash("echo forbid-me")),
			script.Call("mcp__drover__note", script.Input{"text": "old-note"}),
			script.Text("Done."))
		var asked, noted []string
		note := tool.Must("note", "Notes.", func(_ context.Context, in struct {
			Text string `json:"text"`
		},
		) (string, error) {
			noted = append(noted, in.Text)
			return "noted", nil
		}, tool.ReadOnly)
		noDangers := gate.Custom("no-dangers", func(c *gate.Call, _ *gate.Facts) (event.Decision, bool) {
			return event.Decision{Verdict: event.Deny, Reason: "dangers are not for you"}, strings.Contains(string(c.Input), "danger")
		})
		runner := newRunner(t, cli.Options(model), &agent.RunnerOptions{
			Policies: []gate.Policy{noDangers},
			Approver: gate.ApproverFunc(func(_ context.Context, q gate.Question) (gate.Answer, error) {
				asked = append(asked, q.Call.Name+" "+string(q.Call.Input))
				return gate.Answer{Verdict: event.Allow}, nil
			}),
		})
		r := &renames{from: []string{"one.txt", "old-", "forbid-me"}, to: []string{"two.txt", "new-", "danger"}}
		got := record(t, runner.Run(inTime(t), agent.Request{
			Prompt: "go", Settings: agent.Settings{Permissions: &gate.Permissions{}}, Registry: tool.MustRegistry(nil, note), Hooks: &agent.Hooks{Rewrite: r.rewrite},
		}))
		got.check(t)
		if diff := cmp.Diff([]string{`Bash {"command":"echo new-one","description":"Run it"}`}, asked); diff != "" {
			t.Errorf("asked about (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"new-note"}, noted); diff != "" {
			t.Errorf("our tool noted (-want +got):\n%s", diff)
		}
		for _, text := range []string{"TWO", "new-one", "dangers are not for you"} {
			if !model.SawText(text) {
				t.Errorf("the model did not read %q", text)
			}
		}
		if results := of[event.ToolResult](got); results[2].Status != event.ToolDenied {
			t.Errorf("the call whose new input is forbidden ended with %q", results[2].Status)
		}
	})
}

// With a workspace the transaction of a call is about the file that the new input names: what a call that fails
// has changed there is put back.
func TestRewrite_WorkspaceRollsBackTheNewPath(t *testing.T) {
	w := shop(t)
	model := claudetest.NewModel(t,
		script.Reply(bash("echo 9 > old.txt; exit 1")),
		script.Call("Write", script.Input{"file_path": filepath.Join(w.Root(), "old.txt"), "content": "b"}),
		script.Text("Done."))
	base := claudetest.CLI(t).Options(model)
	base.Dir, base.PermissionMode = "", claude.ModeBypassPermissions
	r := &renames{from: []string{"old.txt"}, to: []string{"new.txt"}}
	var ended []string
	got := in(t, nil, base, agent.Request{Settings: agent.Settings{Workspace: w}, Hooks: &agent.Hooks{
		Rewrite: r.rewrite,
		CallEnded: func(_ context.Context, e agent.CallEnd) (string, error) {
			ended = append(ended, string(e.Input))
			return "", nil
		},
	}})
	if done := got.done(t); done.Status != event.DoneSuccess {
		t.Fatalf("the run ended with %+v", done)
	}
	if diff := cmp.Diff([]string{"new.txt"}, changed(t, w)); diff != "" {
		t.Errorf("what is left of the run (-want +got):\n%s", diff)
	}
	if restored := of[workspace.Restored](got); len(restored) != 1 || !slices.Equal(restored[0].Restored, []string{"new.txt"}) {
		t.Errorf("put back was %+v, want what the command had made", restored)
	}
	if len(ended) != 2 || strings.Contains(strings.Join(ended, " "), "old.txt") {
		t.Errorf("CallEnded received %q, want the inputs that were used", ended)
	}
}

// Each prompt of a conversation has its own refusals, and an answer of its own.
func TestStopping_EachPromptHasItsOwnRefusals(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Structured(script.Input{"n": 1}).Always())
	var asked []string
	conversation, err := newAdapter(t, cli.Options(model)).Open(inTime(t), agent.Request{
		MaxRefusals: 1, OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}`),
		Hooks: &agent.Hooks{
			Submitted: func(_ context.Context, s agent.Submission) (string, error) {
				asked = append(asked, s.Prompt)
				return "", nil
			},
			Answering: func(context.Context, agent.Answer) (string, error) {
				asked = append(asked, "answering")
				return "no", nil
			},
			Stopping: func(_ context.Context, s agent.Stop) (string, error) {
				asked = append(asked, fmt.Sprint("answered ", s.Answered))
				return "no", nil
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conversation.Close() }()
	for _, prompt := range []string{"one", "two"} {
		if done := record(t, conversation.Send(inTime(t), prompt)).done(t); string(done.Output) != `{"n":1}` {
			t.Errorf("%s ended with %+v, want an answer", prompt, done)
		}
	}
	want := []string{"one", "answering", "answering", "answered true", "two", "answering", "answering", "answered true"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("the hooks were asked (-want +got):\n%s", diff)
	}
}
