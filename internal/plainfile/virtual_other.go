// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package plainfile

import "os"

func isVirtual(*os.File) bool { return false }
