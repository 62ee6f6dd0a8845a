// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// The CLI makes the first call before the message of the model has ended.
func TestDisclosure_TwoRequestsInOneMessageOpenBoth(t *testing.T) {
	cli := claudetest.CLI(t)
	sections := []*prompt.Section{prompt.Markdown("task", "Task", "Review.")}
	ask := []script.Block{}
	for n := range 2 {
		more := prompt.Markdown(fmt.Sprint("more", n), fmt.Sprint("More ", n), fmt.Sprint("Text ", n))
		more = more.With(tool.Must(fmt.Sprint("extra", n), "Does more.", func(context.Context, tool.None) (string, error) { return "", nil }))
		more.Summary, more.Visibility = "There is more.", prompt.Summary
		sections = append(sections, more)
		ask = append(ask, use(fmt.Sprint("open", n), "mcp__drover__"+prompt.OpenSections, script.Input{"section_keys": []string{fmt.Sprint("more", n)}, "reason": "curious"}))
	}
	for name, restart := range map[string]bool{"in the run": false, "by a restart": true} {
		t.Run(name, func(t *testing.T) {
			model := claudetest.NewModel(t, script.Func(func(r *script.Request) script.Turn {
				if r.SawText("Text 0") || r.SawText("Text 1") {
					return script.Structured(fine)
				}
				return script.Reply(ask...).Chunked(20, 100*time.Millisecond)
			}).Always())
			resp, err := drover.Evaluate(t.Context(), claudecode.New(cli.Options(model)), reviewPrompt(t, sections...), &drover.Options{RestartToOpen: restart})
			if err != nil {
				t.Fatal(err)
			}
			asked := model.Requests()
			last := asked[len(asked)-1]
			if len(asked) != 2 || !last.SawText("Text 0") || !last.SawText("Text 1") {
				t.Errorf("after %d requests the model has read text 0: %t, text 1: %t", len(asked), last.SawText("Text 0"), last.SawText("Text 1"))
			}
			if restart != (resp.Expansions == 1) {
				t.Errorf("%d expansions", resp.Expansions)
			}
		})
	}
}

// The CLI itself takes the last of several answers in one message.
func TestAnswer_FirstOfTwoInOneMessageCounts(t *testing.T) {
	cli := claudetest.CLI(t)
	answer := func(id, text string) script.Block {
		return use(id, "StructuredOutput", script.Input{"summary": text, "issues": []string{}})
	}
	refuseOne := guard.CheckerFunc(func(_ context.Context, a guard.Attempt) (guard.Completion, error) {
		return guard.Completion{Done: !strings.Contains(string(a.Output), "one")}, nil
	})
	for name, x := range map[string]struct {
		blocks []script.Block
		check  guard.Checker
		want   string
		status []event.ToolStatus
	}{
		"both fit":             {[]script.Block{answer("a1", "one"), answer("a2", "two")}, nil, "one", []event.ToolStatus{event.ToolSuccess, event.ToolSuccess}},
		"the first is refused": {[]script.Block{answer("a1", "one"), answer("a2", "two")}, refuseOne, "two", []event.ToolStatus{event.ToolDenied, event.ToolSuccess}},
		"the first does not fit": {
			[]script.Block{use("a1", "StructuredOutput", script.Input{"summary": 1}), answer("a2", "two")},
			nil, "two",
			[]event.ToolStatus{event.ToolError, event.ToolSuccess},
		},
	} {
		t.Run(name, func(t *testing.T) {
			model := claudetest.NewModel(t, script.Reply(x.blocks...)).RequireAllUsed()
			resp, err := drover.Evaluate(t.Context(), claudecode.New(cli.Options(model)), reviewPrompt(t), &drover.Options{Completion: x.check})
			if err != nil {
				t.Fatal(err)
			}
			status := map[string]event.ToolStatus{}
			for c := range session.Query[session.ToolInvoked](resp.Session).All() {
				status[string(c.CallID)] = c.Status
			}
			if diff := cmp.Diff(x.status, []event.ToolStatus{status["a1"], status["a2"]}); resp.Output.Summary != x.want || diff != "" {
				t.Errorf("the answer is %q, want %q; status (-want +got):\n%s", resp.Output.Summary, x.want, diff)
			}
			executed, _ := session.Query[session.PromptExecuted](resp.Session).Latest()
			if resp.StopReason != "tool_use" || executed.StopReason != resp.StopReason {
				t.Errorf("the stop reason is %q, and the session has %q", resp.StopReason, executed.StopReason)
			}
		})
	}
}

// The CLI itself reports the stop reason of an error message that it wrote.
func TestStopReason_IsThatOfTheModelsLastAnswer(t *testing.T) {
	cli := claudetest.CLI(t)
	for name, x := range map[string]struct {
		turns []script.Turn
		want  string
	}{
		"cut off":                    {[]script.Turn{script.MaxTokens("half").Always()}, "max_tokens"},
		"refused":                    {[]script.Turn{script.Refusal("No.").Always()}, "refusal"},
		"an API error after a call":  {[]script.Turn{script.Call("Glob", script.Input{"pattern": "*"}), script.Fail(400, "no").Always()}, "tool_use"},
		"an API error and no answer": {[]script.Turn{script.Fail(400, "no").Always()}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			model := claudetest.NewModel(t, x.turns...)
			_, err := drover.Evaluate(t.Context(), claudecode.New(cli.Options(model)), reviewPrompt(t), nil)
			var failed *drover.EvaluationError
			if !errors.As(err, &failed) {
				t.Fatalf("the error is %v", err)
			}
			executed, _ := session.Query[session.PromptExecuted](failed.Summary.Session).Latest()
			if reason, _ := failed.Payload["stop_reason"].(string); reason != x.want {
				t.Errorf("the error has the stop reason %q, want %q", reason, x.want)
			}
			if failed.Summary.StopReason != x.want || executed.StopReason != x.want {
				t.Errorf("the stop reason is %q, and the session has %q, want %q", failed.Summary.StopReason, executed.StopReason, x.want)
			}
		})
	}
}

// The first answer that fits ends the run, whatever else its message asks for.
func TestDisclosure_AnswerInTheSameMessageEndsTheRun(t *testing.T) {
	cli := claudetest.CLI(t)
	open := use("open", "mcp__drover__"+prompt.OpenSections, script.Input{"section_keys": []string{"more"}, "reason": "curious"})
	answer := use("answer", "StructuredOutput", script.Input{"summary": "one", "issues": []string{}})
	wrong := use("answer", "StructuredOutput", script.Input{"summary": 1})
	for name, x := range map[string]struct {
		blocks     []script.Block
		want       string
		expansions int
	}{
		"the answer first":        {[]script.Block{answer, open}, "one", 0},
		"the request first":       {[]script.Block{open, answer}, "one", 0},
		"an answer that is wrong": {[]script.Block{wrong, open}, "two", 1},
	} {
		t.Run(name, func(t *testing.T) {
			model := claudetest.NewModel(t, script.Reply(x.blocks...), script.Structured(script.Input{"summary": "two", "issues": []string{}}))
			sections := []*prompt.Section{prompt.Markdown("task", "Task", "Review."), greeting(t)}
			resp, err := drover.Evaluate(t.Context(), claudecode.New(cli.Options(model)), reviewPrompt(t, sections...), &drover.Options{RestartToOpen: true})
			if err != nil {
				t.Fatal(err)
			}
			if resp.Output.Summary != x.want || resp.Expansions != x.expansions || len(model.Requests()) != 1+x.expansions {
				t.Errorf("the answer is %q after %d expansions and %d requests, want %q after %d expansions",
					resp.Output.Summary, resp.Expansions, len(model.Requests()), x.want, x.expansions)
			}
		})
	}
}
