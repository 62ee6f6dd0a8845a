// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin && !windows

package main

import (
	"errors"
	"io"
)

func freeSpace(string) (uint64, error) { return 0, errors.ErrUnsupported }

// doctorWidth is 0: lines are not folded.
func doctorWidth(io.Writer) int { return 0 }
