// SPDX-License-Identifier: Apache-2.0

// Package isolation keeps an agent apart from the machine it runs on.
//
// An [Isolation] says what the agent may have: a network for its tools ([NetworkPolicy]), files beyond
// its workspace ([Sandbox]), variables, a way to pay for the model, limits. Its zero value is the safe
// one: no network for tools, no variables of the host, no files but the workspace and a private home,
// and the isolation level of a cell.
//
// [Isolation.Open] makes a cell for a [Program], which describes an agent's program to this package: nothing here
// knows an agent.
//
// Promises:
//
//   - What an Isolation says is enforced, or the run does not start and the error names the field, the
//     reason and the platform. What was left at its default and could not be enforced is an event.
//   - The environment is built from nothing. Names and values that look like secrets never pass, unless
//     they were given by name in [Isolation.Env].
//   - The credential stays outside. The agent's package finds it, and the gateway keeps it;
//     no type of this package prints it.
//   - The home is new for each run, private, and removed when the run ends. What a killed program left
//     behind is removed by [SweepHomes], which touches nothing of anybody else.
package isolation
