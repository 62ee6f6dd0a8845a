// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package landlock

import (
	"fmt"
	"os"
	"runtime"
)

// ABI is 0: this system has no Landlock.
func ABI() int { return 0 }

// Open fails: this system has no Landlock.
func (Ruleset) Open() (*os.File, Enforced, error) {
	return nil, Enforced{}, fmt.Errorf("%w: %s does not have it\n  next: run on Linux, or use the CLI's own sandbox", ErrUnavailable, runtime.GOOS)
}
