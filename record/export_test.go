// SPDX-License-Identifier: Apache-2.0

package record

import (
	"io"
	"io/fs"
	"testing"
)

// OpenBundleAt opens a bundle that is not a file.
func OpenBundleAt(src io.ReaderAt, size int64) (*Run, error) {
	return openBundle(src, size, "bundle.zip")
}

// ReadFile reads a file of a run.
func ReadFile(r *Run, name string) ([]byte, error) { return fs.ReadFile(r.files, name) }

// LowerLimits has tests meet the limits of a line of a recording and of a patch without files of that size.
func LowerLimits(t *testing.T, limit int) {
	exchange, diff := maxExchange, maxDiff
	maxExchange, maxDiff = limit, int64(limit)
	t.Cleanup(func() { maxExchange, maxDiff = exchange, diff })
}

// BeforeWrite has f called before each write of a recorder during a run.
func BeforeWrite(r *Recorder, f func()) { r.beforeWrite = f }

// LowerWaiting has tests meet the limit of a transcript that waits for the disk.
func LowerWaiting(t *testing.T, limit int) {
	before := maxWaiting
	maxWaiting = limit
	t.Cleanup(func() { maxWaiting = before })
}
