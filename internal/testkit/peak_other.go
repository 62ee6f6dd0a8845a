// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package testkit

import "os"

func peakOf(*os.ProcessState) int64 { return 0 }
