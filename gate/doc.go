// SPDX-License-Identifier: Apache-2.0

// Package gate decides about tool calls. A [Gate] is made of policies; from a call and the facts
// that the caller knows it makes one [event.Decision]: allow, ask or deny.
//
// Promises:
//
//   - A decision is pure: the same call and the same [Facts] give the same answer. A gate does no
//     I/O, holds no state and may be used by several goroutines. Only [Policy.When] may bring in more.
//   - A denial beats a question, a question beats a permission, and any of them beats the rule for calls that no policy
//     knows, which denies unless a policy sets another. So adding a policy that denies never makes a call pass.
//   - Of several denials the first gives the reason, in the order of [Stage]: limits, lists, risk,
//     capabilities, session, custom; within a stage in the order in which they were given.
//   - A policy that panics denies.
//   - "mcp__server__tool" and the bare name of a tool of ours get the same verdict; only a bare name
//     that the agent has too is judged by the risks of both. A tool of a server that is not ours never
//     counts as one of ours or of the agent's own.
//   - Tools that are registered later are seen.
//
// An [Engine] applies a gate to one run: it fills in the facts, asks an [Approver] where the verdict is Ask, emits every
// decision, and gives each call one verdict wherever it is requested. An adapter such as agent/claudecode makes its agent
// ask it before every tool call. A call whose question or decision cannot be asked, answered or recorded is denied.
package gate
