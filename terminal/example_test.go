// SPDX-License-Identifier: Apache-2.0

package terminal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/terminal"
)

// review asks an agent, and shows what it does.
func review(ctx context.Context, adapter agent.Adapter, in io.Reader, out io.Writer) (string, error) {
	p, err := prompt.FromText[string]("Review the last commit.")
	if err != nil {
		return "", err
	}
	view, approver := terminal.New(in, out, terminal.Options{Catalogue: adapter.Catalogue(), MaxUSD: 1})
	defer view.Close()
	defer context.AfterFunc(ctx, view.Stopping)()
	run := drover.Stream(ctx, adapter, p, &drover.Options{Approver: approver})
	for e, err := range run.Events() {
		if err != nil {
			break // Response has it too
		}
		view.Show(e)
	}
	view.Close() // before the program writes anything
	resp, err := run.Response()
	if err != nil {
		return "", err
	}
	return resp.Output, nil
}

// A program passes os.Stdin and os.Stdout, and what is shown depends on what they are. Here the output is no terminal, and an
// agent that follows a script takes the place of a real one.
func ExampleNew() {
	adapter := agenttest.New(agenttest.Emit(
		event.Init{Model: "a-model", Tools: []string{"Bash"}},
		event.ToolCall{ID: "1", Name: "Bash", Input: json.RawMessage(`{"command":"git show"}`)},
		event.ToolResult{ID: "1", Name: "Bash", Status: event.ToolSuccess, Output: json.RawMessage(`"one\ntwo"`), Duration: 40 * time.Millisecond},
		event.Text{Content: "It is good."},
		event.Done{Status: event.DoneSuccess, Result: "It is good.", Usage: event.Usage{ToolUses: 1}},
	))
	var out bytes.Buffer
	answer, err := review(context.Background(), adapter, nil, &out)

	times := regexp.MustCompile(`(?m)^  \d\d\.\d|  +[\d.]+ m?s$`) // they differ from run to run
	fmt.Print(times.ReplaceAllString(out.String(), "  -"))
	fmt.Println(answer, err)
	// Output:
	// -  agent        scripted: a-model                                           1 tool
	//   -  Bash         git show                                                    2 lines  -
	//   -  done         success                                                     1 call  -
	//
	// It is good.
	// It is good. <nil>
}

// askBoth asks at the keyboard and on a page. The first answer counts.
func askBoth(keyboard, page gate.Approver) gate.Approver {
	return gate.ApproverFunc(func(ctx context.Context, q gate.Question) (gate.Answer, error) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		answers := make(chan gate.Answer, 1)
		go func() {
			if answer, err := page.Approve(ctx, q); err == nil {
				answers <- answer
				cancel(gate.AnsweredElsewhere{Where: "on the page", Verdict: answer.Verdict})
			}
		}()
		answer, err := keyboard.Approve(ctx, q)
		select {
		case answer = <-answers:
			return answer, nil
		default:
			return answer, err
		}
	})
}

func Example_answeredElsewhere() {
	keyboard := gate.ApproverFunc(func(ctx context.Context, _ gate.Question) (gate.Answer, error) {
		<-ctx.Done() // no key is pressed
		fmt.Println(context.Cause(ctx))
		return gate.Answer{}, ctx.Err()
	})
	page := gate.ApproverFunc(func(context.Context, gate.Question) (gate.Answer, error) {
		return gate.Answer{Verdict: event.Allow}, nil
	})
	answer, err := askBoth(keyboard, page).Approve(context.Background(), gate.Question{})
	fmt.Println(answer.Verdict, err)
	// Output:
	// answered on the page: allowed
	// allow <nil>
}
