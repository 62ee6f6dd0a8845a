// SPDX-License-Identifier: Apache-2.0

// Command testsum runs go test and prints what matters: the output of failed tests in full,
// go's own line for each package, the slowest tests, on Linux the CPU time by package, and last once more what failed. It passes its
// arguments on to go test and fails exactly when go test does.
package main
