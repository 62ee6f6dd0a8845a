// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"flag"
	"os"

	_ "pgregory.net/rapid" // registers the flags that are set below
)

// Soak reports whether tests run in their full sizes.
func Soak() bool { return os.Getenv("DROVER_SOAK") != "" }

// Size is small in an ordinary run and full in a soak.
func Size(small, full int) int {
	if Soak() {
		return full
	}
	return small
}

// Property tests take the same examples in every ordinary run, so that a failure is one of the
// change at hand. The flags can still be given on the command line.
func init() {
	if Soak() {
		_ = flag.Set("rapid.checks", "5000")
		return
	}
	_ = flag.Set("rapid.seed", "1")
}
