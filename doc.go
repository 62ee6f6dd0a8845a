// SPDX-License-Identifier: Apache-2.0

// Package drover has coding agents answer typed prompts.
//
// [Evaluate] takes a prompt and returns a typed answer. It renders the prompt and starts an agent
// in a working directory of its own, with the tools and skills of the prompt. Every tool call is decided,
// made as a transaction and recorded in a session. The answer is checked against the type of the prompt.
// [Stream] also yields the events of the run, and a [Conversation] continues after the first answer.
//
// An adapter connects to one agent; package claudecode has that of Claude Code. A prompt is made with package prompt:
//
//	p, err := prompt.NewPrompt[Review]("docs", "review", prompt.Markdown("task", "Task", "Review it."))
//	...
//	adapter := claudecode.New(nil)
//	defer adapter.Close()
//	resp, err := drover.Evaluate(ctx, adapter, p, &drover.Options{
//		Settings: agent.Settings{Budget: &guard.Budget{MaxTotalTokens: 50_000}},
//		Deadline: guard.FromNow(5 * time.Minute),
//	})
//	...
//	fmt.Println(resp.Output, resp.CostUSD())
//
// Every failure is an [*EvaluationError], with the next step and whether to retry.
package drover
