// SPDX-License-Identifier: Apache-2.0

// Package agenttest helps to test what drives agents, and adapters themselves. An [Adapter] is an agent
// that follows a script, also into faults that a real agent has only on bad days. [TestAdapter] is the
// definition of an [agent.Adapter] as a test suite: a new adapter is one when the suite passes on it.
//
// Neither uses the network or a clock of its own, so that both work within testing/synctest. Only the checks
// of the suite about an agent's own tools use files.
package agenttest
