// SPDX-License-Identifier: Apache-2.0

// Package drovertest is the definition of what an adapter must do for [drover.Evaluate], as a suite of
// tests: an adapter keeps what the package drover promises when [TestAdapter] passes on it. Where
// [agenttest.TestAdapter] looks at an adapter alone, this suite looks at whole evaluations.
//
// The model is scripted, by steps that know no protocol. The author of an adapter translates them to the protocol
// of its agent, and lists the [Capabilities] of the adapter.
package drovertest
