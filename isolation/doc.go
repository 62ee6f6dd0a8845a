// SPDX-License-Identifier: Apache-2.0

// Package isolation isolates an agent from the machine it runs on.
//
// An [Isolation] configures what the agent may use: a network for its tools ([NetworkPolicy]), files beyond its workspace
// ([Sandbox]), variables, credentials for the model, limits. Its zero value is the safe one: no network for tools, no
// variables of the host, no files but the workspace and a private home, and the isolation level of a cell.
//
// [Isolation.Open] makes a cell for a [Program], which describes an agent's program: this package knows no agent.
//
// Promises:
//
//   - An Isolation is enforced, or the run does not start and the error names the field, the
//     reason and the platform. A default that cannot be enforced is reported as an event.
//   - The environment is built from nothing. Names and values that look like secrets never pass, unless
//     they were given by name in [Isolation.Env].
//   - The credential stays outside. The agent's package finds it, and the gateway keeps it;
//     no type of this package prints it.
//   - The home is new for each run, private, and removed when the run ends. [SweepHomes] removes the
//     homes of killed programs, and no other files.
package isolation
