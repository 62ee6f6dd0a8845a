// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin && !windows

package doctor

import "errors"

func freeSpace(string) (uint64, error) { return 0, errors.ErrUnsupported }
