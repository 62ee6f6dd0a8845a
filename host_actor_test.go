// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// The steps here do what Claude Code does about a call, in its order. They show what a host makes of it
// without a process; the tests with the real CLI show that it is so.

const noted = `{"summary":"s","issues":[]}`

// answers is the end of a run that has an answer.
func answers() agenttest.Step {
	return agenttest.Emit(event.Done{Status: event.DoneSuccess, Result: "ok", Output: json.RawMessage(noted)})
}

func call(id, name, input string) event.ToolCall {
	return event.ToolCall{ID: event.CallID(id), Name: name, Input: json.RawMessage(input)}
}

// makes is a call of a tool of the agent's own: rewritten, decided, made, reported. A failure is the
// text of a tool that fails.
func makes(c event.ToolCall, output, failure string) agenttest.Step {
	return func(r *agenttest.Run) {
		ask(r, c, func(c event.ToolCall) {
			end := agent.CallEnd{ToolCall: c, Status: event.ToolSuccess, Output: json.RawMessage(output), Error: failure}
			result := event.ToolResult{ID: c.ID, Name: c.Name, Status: event.ToolSuccess, Output: json.RawMessage(output)}
			if failure != "" {
				end.Status, result.Status, result.Failure = event.ToolError, event.ToolError, &event.ToolFailure{Message: failure}
			}
			if more, err := r.Request.Hooks.CallEnded(r.Context, end); err == nil && more != "" {
				r.Yield(event.New(event.Text{Content: "told: " + more}), nil)
			}
			r.Yield(event.Event{Payload: result, AgentID: c.AgentID}, nil)
		})
	}
}

// calls is a call of one of our tools, through the server of the run.
func calls(c event.ToolCall) agenttest.Step {
	return func(r *agenttest.Run) {
		bare := strings.TrimPrefix(c.Name, "mcp__"+r.Request.ToolServer+"__")
		ask(r, c, func(c event.ToolCall) {
			got := r.Request.Registry.Execute(r.Context, tool.Call{ID: c.ID, Name: bare, Input: c.Input, AgentID: c.AgentID})
			end := agent.CallEnd{ToolCall: c, Status: got.Outcome}
			_, _ = r.Request.Hooks.CallEnded(r.Context, end)
			r.Yield(event.Event{Payload: got.Event()}, nil)
		})
	}
}

// ask reports a call, has it rewritten and decided, and makes it if it is allowed.
func ask(r *agenttest.Run, c event.ToolCall, run func(event.ToolCall)) {
	r.Yield(event.Event{Payload: c, AgentID: c.AgentID}, nil)
	if rewrite := r.Request.Hooks.Rewrite; rewrite != nil {
		if input, err := rewrite(r.Context, c); err == nil && input != nil {
			c.Input = input
		}
	}
	if d := r.Request.Host.Decide(r.Context, c); d.Verdict != event.Allow {
		r.Yield(event.Event{Payload: event.ToolResult{
			ID: c.ID, Name: c.Name, Status: event.ToolDenied, Failure: &event.ToolFailure{Message: d.Reason},
		}, AgentID: c.AgentID}, nil)
		return
	}
	run(c)
}

// notes is a tool that notes the text of its input, and ends as its input asks.
func notes() *tool.Tool {
	return tool.Must("note", "Notes something.", func(ctx context.Context, in struct {
		Text string `json:"text"`
		Then string `json:"then,omitempty"`
	},
	) (remark, error) {
		s, _ := session.From(ctx)
		if _, err := s.Dispatch(ctx, note{in.Text}); err != nil {
			return remark{}, err
		}
		switch in.Then {
		case "fail":
			return remark{}, errors.New("no ink")
		case "panic":
			panic("no paper")
		case "wait":
			<-ctx.Done()
			return remark{}, ctx.Err()
		}
		return remark{in.Text}, nil
	})
}

type note struct {
	Text string `json:"text"`
}

type remark struct {
	Text string `json:"text"`
}

func reviewPrompt(t testing.TB, sections ...*prompt.Section) *prompt.Prompt[review] {
	t.Helper()
	if len(sections) == 0 {
		sections = []*prompt.Section{prompt.Markdown("task", "Task", "Review it.").With(notes())}
	}
	p, err := prompt.NewPrompt[review]("demo", "review", sections...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// play evaluates the prompt with an agent that follows a script.
func play(t testing.TB, opts *drover.Options, steps ...agenttest.Step) (*drover.Response[review], error) {
	t.Helper()
	if opts == nil {
		opts = &drover.Options{}
	}
	if opts.Session == nil {
		opts.Session = session.New(nil)
	}
	return drover.Evaluate(t.Context(), &agenttest.Adapter{Tools: catalogue.Tools(), Steps: steps}, reviewPrompt(t), opts)
}

// recorded are the calls that the session knows, each in a line.
func recorded(s *session.Session) []string {
	got := []string{}
	for c := range session.Query[session.ToolInvoked](s).All() {
		line := fmt.Sprintf("%s %s %s %s", c.CallID, c.Name, c.Source, c.Status)
		if c.AgentID != "" {
			line += " of " + c.AgentID
		}
		if c.Error != "" {
			first, _, _ := strings.Cut(c.Error, "\n")
			line += ": " + first
		}
		got = append(got, line)
	}
	slices.Sort(got)
	return got
}

// kept are what is left of the notes.
func kept(s *session.Session) []string {
	got := []string{}
	for n := range session.Query[note](s).All() {
		got = append(got, n.Text)
	}
	return got
}
