// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package objects

import (
	"errors"
	"math"
	"os"
)

func clone(_, _ *os.File) error { return errors.ErrUnsupported }

func copyRange(_, _ *os.File, _, _ int64) (int64, error) { return 0, errors.ErrUnsupported }

// fileData knows no holes here.
func fileData(_ *os.File, offset int64) (start, end int64, err error) {
	return offset, math.MaxInt64, nil
}
