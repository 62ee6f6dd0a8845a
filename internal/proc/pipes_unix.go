// SPDX-License-Identifier: Apache-2.0

//go:build unix

package proc

import (
	"errors"
	"syscall"
)

func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
