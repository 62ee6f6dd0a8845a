// SPDX-License-Identifier: Apache-2.0

// Package testkit has what tests of several packages share.
//
//   - Sizes: an ordinary run is small and always the same; a soak, chosen by DROVER_SOAK=1, is large and
//     different each time. To import the package is enough for property tests.
//   - Costs: tests compare what inputs cost that differ in size alone.
//   - Programs: a test starts its own program again, to kill it, or as an ordinary user where it runs as root.
//     The CLI treats root differently, above all in bypass mode, and most people are not root.
//   - Terminals: a command runs in a real one, tmux on a socket of its own, whose screen can be drawn as a picture.
package testkit
