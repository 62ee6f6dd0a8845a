// SPDX-License-Identifier: Apache-2.0

package objects

import "os"

// A system is what can be had from the operating system, or not.
type system struct {
	writeAt func(f *os.File, b []byte, offset int64) (int, error)
	// clone makes an empty file share all blocks of another one.
	clone func(dst, src *os.File) error
	// copyRange copies a range without reading it, and reports how much of it was done when it fails.
	copyRange func(dst, src *os.File, start, end int64) (int64, error)
}

var realSystem = system{writeAt: (*os.File).WriteAt, clone: clone, copyRange: copyRange}
