// SPDX-License-Identifier: Apache-2.0

// Package drover has coding agents answer typed prompts.
//
// [Evaluate] takes a prompt and returns a typed answer. Behind it, the prompt is rendered, an agent is
// started in a place of its own with the tools and skills of the prompt, every call that it makes is
// decided, carried out as a transaction and recorded in a session, and its answer is checked against the
// type that the prompt asks for. [Stream] gives the same with everything that happens while it happens,
// and a [Conversation] goes on after the first answer.
//
// An adapter says which agent it is; package claudecode has that of Claude Code. A prompt is made with
// package prompt:
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
// Whatever goes wrong is an [*EvaluationError], which says what to do next and whether to try again.
package drover
