// SPDX-License-Identifier: Apache-2.0

// Command mutate breaks promises on purpose and checks that a test notices. Each file in mutations/ holds blocks such as
//
//	mutation: unknown-tool-allowed
//	shows: S004-031, security/rights
//	file: gate/gate.go
//	test: ./gate TestGate_UnknownToolDenied
//	--- old
//		return deny
//	--- new
//		return allow
//	--- end
//
// A block names one file, text that occurs in it exactly once, and its replacement. The program first runs the named tests
// on the code as it is: they must pass. Then it applies one mutation at a time and runs the named test: it must fail. A mutation
// that does not apply, does not compile, is skipped by its test or is not noticed is an error.
//
// Mutations are overlays of the build, so the checkout is never changed. Those within functions share one build for each package
// of tests, and a run chooses one of them by a variable of the environment. A mutation elsewhere has a build of its own, and so
// has one that its test does not notice in the shared build: tests may build programs, or start some without that variable.
//
// Usage:
//
//	mutate [-run regexp] [-j n] [-list]
package main
