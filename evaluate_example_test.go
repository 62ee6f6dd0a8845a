// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
)

type Findings struct {
	Summary string   `json:"summary" doc:"two sentences"`
	Issues  []string `json:"issues"`
}

var findingsTemplate = prompt.Must[Findings]("docs", "review",
	prompt.Markdown("task", "Task", "Review the project in the current folder. Change nothing."))

func reviewFolder(ctx context.Context, out io.Writer, folder string, opts *claude.Options) error {
	p, err := findingsTemplate.Bind()
	if err != nil {
		return err
	}
	adapter := claudecode.New(opts) // nil: the claude that is installed
	defer adapter.Close()
	resp, err := drover.Evaluate(ctx, adapter, p, &drover.Options{
		Settings: agent.Settings{
			Dir:    folder,
			Tools:  []string{"Read", "Glob", "Grep"},
			Budget: &guard.Budget{MaxTotalTokens: 200_000},
		},
		Deadline: guard.FromNow(5 * time.Minute),
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, resp.Output.Summary, resp.Output.Issues)
	for call := range session.Query[session.ToolInvoked](resp.Session).All() {
		fmt.Fprintln(out, call.Name, call.Status)
	}
	return nil
}

// The evaluation of the front page, on the real CLI.
func TestREADME_EvaluationRuns(t *testing.T) {
	cli := claudetest.CLI(t)
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "main.go"), []byte("package main\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	model := claudetest.NewModel(t,
		script.Call("Read", script.Input{"file_path": filepath.Join(folder, "main.go")}),
		script.Call("Write", script.Input{"file_path": filepath.Join(folder, "new"), "content": "x"}),
		script.Structured(script.Input{"summary": "It is empty.", "issues": []string{"no main"}}),
	)
	var out strings.Builder
	if err := reviewFolder(t.Context(), &out, folder, cli.Options(model)); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "It is empty. [no main]\nRead success\n"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want it to begin with %q", got, want)
	}
	if _, err := os.Stat(filepath.Join(folder, "new")); err == nil {
		t.Error("a tool that is not allowed has written a file")
	}
}

// answering is an agent for examples: it reads a file and answers.
func answering(answer string) agent.Adapter {
	return agenttest.New(
		agenttest.UseTool(event.ToolCall{ID: "1", Name: "Read", Input: []byte(`{"file_path":"main.go"}`)}, "package main"),
		agenttest.Emit(event.Done{Status: event.DoneSuccess, Output: []byte(answer), ResumeToken: "conversation-1"}),
	)
}

// A prompt goes in, and a Go value comes out. What happened on the way is in the session.
func ExampleEvaluate() {
	ctx := context.Background()
	adapter := answering(`{"summary":"Short and clear.","issues":[]}`) // a program has claudecode.New(nil) here
	p, err := findingsTemplate.Bind()
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := drover.Evaluate(ctx, adapter, p, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Output.Summary)
	for call := range session.Query[session.ToolInvoked](resp.Session).All() {
		fmt.Println(call.Name, call.Status)
	}
	// Output:
	// Short and clear.
	// Read success
}

// Stream gives the events as they happen. The last one is a done.
func ExampleStream() {
	ctx := context.Background()
	adapter := answering(`{"summary":"Short and clear.","issues":[]}`)
	p, err := findingsTemplate.Bind()
	if err != nil {
		fmt.Println(err)
		return
	}
	run := drover.Stream(ctx, adapter, p, nil)
	for e, err := range run.Events() {
		if err != nil {
			break // Response has it too
		}
		switch what := e.Payload.(type) {
		case event.ToolCall:
			fmt.Println("calls", what.Name)
		case event.ToolResult:
			fmt.Println(what.Name, what.Status)
		case event.Done:
			fmt.Println("done:", what.Status)
		}
	}
	resp, err := run.Response()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Output.Summary)
	// Output:
	// calls Read
	// Read success
	// done: success
	// Short and clear.
}

// A conversation goes on after the first answer.
func ExampleConverse() {
	ctx := context.Background()
	adapter := answering(`{"summary":"Short and clear.","issues":[]}`)
	p, err := findingsTemplate.Bind()
	if err != nil {
		fmt.Println(err)
		return
	}
	talk := drover.Converse(adapter, p, nil)
	defer talk.Close()
	first, err := talk.Begin(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := talk.Send(ctx, "Look at the tests too.")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(first.Output.Summary, again.Output.Summary)
	fmt.Println(talk.ResumeToken()) // drover.Options{Resume: …} continues it in another program
	// Output:
	// Short and clear. Short and clear.
	// conversation-1
}

// What to do depends on the kind of failure.
func ExampleEvaluationError_limits() {
	ctx := context.Background()
	adapter := answering("")
	p, err := findingsTemplate.Bind()
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = drover.Evaluate(ctx, adapter, p, &drover.Options{Deadline: guard.At(time.Unix(0, 0))})
	failure, _ := errors.AsType[*drover.EvaluationError](err)
	throttle, _ := errors.AsType[*drover.ThrottleError](err)
	switch {
	case throttle != nil:
		fmt.Println("the service is busy; wait at least", throttle.RetryAfter)
	case errors.Is(err, guard.ErrDeadlineExceeded), errors.Is(err, guard.ErrBudgetExhausted):
		fmt.Println("a limit was reached after", failure.Summary.Turns, "model calls")
	case failure != nil && failure.Retry.Worthwhile && failure.Retry.Safe:
		fmt.Println("try it again")
	default:
		fmt.Println(err)
	}
	// Output:
	// a limit was reached after 0 model calls
}
