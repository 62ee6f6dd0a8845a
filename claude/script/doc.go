// SPDX-License-Identifier: Apache-2.0

// Package script answers the Anthropic Messages API from a script, so that the real Claude Code
// CLI, or any other client of that API, can run without a key and without a network.
//
// A [Script] is a list of turns. Each [Turn] is one answer: text, thinking, tool calls, structured
// output, an API error, or a stream that breaks in a chosen way. A script is written in Go or
// loaded from a YAML file (see [Load]; docs/model-scripts.md is the reference of the format).
//
//	server, err := script.Start(script.New(
//		script.Call("Bash", script.Input{"command": "echo hi"}),
//		script.Text("It said hi."),
//	))
//
// # Which turn answers
//
// For each request, the first conditional turn (one with a [Match]) that has uses left and whose condition holds answers;
// otherwise the next unconditional turn, in order; otherwise [Script.Default]. A turn is used once unless it has
// [Turn.Repeat]. Without a turn the request is refused with HTTP status 402, which the CLI neither retries nor takes for an
// authentication failure, and a [Failure] that describes the request is recorded.
//
// A client that retries sends a new request, which takes the next turn: after a turn that fails with
// 529, write the turn that answers the retry.
//
// # What is promised
//
//   - Every request is recorded before it is answered, with its raw body. A [Request] never changes
//     after that, and all methods of [Model] and [Server] are safe for concurrent use.
//   - Turns are taken one at a time, in the order in which requests arrive; answers are sent
//     concurrently.
//   - Delays and hanging answers end when the client goes away or the server is closed.
//   - [Server.Close] is bounded, and leaves no goroutine unless a function of the script itself
//     never returns; then Close returns [ErrStillRunning].
//   - Identifiers are counted, not random: the same requests in the same order get the same answers.
//
// The real API may refuse a request that is accepted here: [Script.Strict] checks the rules that
// clients break most often, not all of them.
package script
