// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package landlock

import (
	"fmt"
	"os"
	"runtime"

	"github.com/drover-agents/drover/advice"
)

// ABI is 0: this system has no Landlock.
func ABI() int { return 0 }

// Open fails: this system has no Landlock.
func (Ruleset) Open() (*os.File, Enforced, error) {
	return nil, Enforced{}, advice.Wrap(fmt.Errorf("%w: %s does not have it", ErrUnavailable, runtime.GOOS), "run on Linux, or use the CLI's own sandbox")
}
