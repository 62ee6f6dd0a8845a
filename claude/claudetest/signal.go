// SPDX-License-Identifier: Apache-2.0

package claudetest

import (
	"os/signal"
	"syscall"
)

func ignoreTermination() { signal.Ignore(syscall.SIGTERM, syscall.SIGINT) }
