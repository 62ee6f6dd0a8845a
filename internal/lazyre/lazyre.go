// SPDX-License-Identifier: Apache-2.0

// Package lazyre compiles regular expressions when they are first used. Most programs never use
// most of them, and each takes some kilobytes of the host's memory.
package lazyre

import (
	"regexp"
	"sync"
)

// New returns a function that gives the compiled expression. A wrong expression panics at the first
// call, so every expression needs a test that uses it.
func New(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
